/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Gentle Slow Start over RENO: see gss.h. */
#define GSS_OVER_RENO
#include "gss.h"

CC_REGISTER(fanin_gss_reno, "fanin_gss_reno", TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(gss_init), .ssthresh = CC_FN(gss_ssthresh), .cong_avoid = CC_FN(gss_cong_avoid),
	    .pkts_acked = CC_FN(gss_acked), .cwnd_event = CC_FN(gss_event), .set_state = CC_FN(gss_set_state),
	    .undo_cwnd = CC_FN(gss_undo));
