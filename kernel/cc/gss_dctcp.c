/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Gentle Slow Start over DCTCP: see gss.h. */
#define GSS_OVER_DCTCP
#include "gss.h"

CC_REGISTER(fanin_gss_dctcp, "fanin_gss_dctcp", TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	    .init = CC_FN(gss_init), .ssthresh = CC_FN(gss_ssthresh), .cong_avoid = CC_FN(gss_cong_avoid),
	    .pkts_acked = CC_FN(gss_acked), .cwnd_event = CC_FN(gss_event), .set_state = CC_FN(gss_set_state),
	    .in_ack_event = CC_FN(gss_in_ack), .undo_cwnd = CC_FN(gss_undo));
