"""Half a packet per round trip."""

import fanin


class Half(fanin.CongestionControl):
    """Adds half a packet per round trip, halves on loss."""

    def on_ack(self, conn, ack):
        """Grow."""
        if ack.may_grow:
            self.cwnd += 1 if self.cwnd < self.ssthresh else 0.5 / self.cwnd

    def on_congestion(self, conn, cause):
        """Shrink."""
        half = max(conn.loss_basis / 2, 2)
        if cause != "repeated timeout":
            self.ssthresh = half
        self.cwnd = 1 if "timeout" in cause else min(half, self.cwnd)
