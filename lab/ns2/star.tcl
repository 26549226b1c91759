# Senders around one switch, one after another, and what became of them:
#   ns star.tcl KEY VALUE ...      (the keys are below; times in seconds, rates in bit/s, buffer and windows in packets)
# prints one line: packets acknowledged, drops, mean queue in packets, timeouts, packets sent again, and by flow the time until its last ACK.
array set is {
    agent Newreno n 4 rate 1e9 slow 1e9 delay 25e-6 delays {} buffer 100 packet 1460 iw 2 minrto 0.2 delack 0 overhead 5e-6
    stagger 0 packets -1 duration 2 seed 1
}
array set is $argv
global defaultRNG
$defaultRNG seed $is(seed)

Agent/TCP set packetSize_ $is(packet)
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ $is(iw)
Agent/TCP set minrto_ $is(minrto)
Agent/TCP set maxrto_ 60
Agent/TCP set tcpTick_ 0.00001
Agent/TCP set overhead_ $is(overhead)

set ns [new Simulator]
set switch [$ns node]
set client [$ns node]
$ns duplex-link $switch $client $is(slow) $is(delay) DropTail
$ns queue-limit $switch $client $is(buffer)
$ns queue-limit $client $switch 100000
set watch [$ns monitor-queue $switch $client ""]
set length [$watch get-pkts-integrator]

set senders {}
set took {}
proc answered {i} {
    global ns started took
    lappend took $i [expr [$ns now] - $started($i)]
}
for {set i 0} {$i < $is(n)} {incr i} {
    set server [$ns node]
    set far [expr {[llength $is(delays)] ? [lindex $is(delays) $i] : $is(delay)}]
    $ns duplex-link $server $switch $is(rate) $far DropTail
    $ns queue-limit $server $switch 100000
    $ns queue-limit $switch $server 100000
    set sender [new Agent/TCP/$is(agent)]
    set kind [expr {$is(agent) == "Sack1" ? ($is(delack) ? "Sack1/DelAck" : "Sack1") : ($is(delack) ? "DelAck" : "")}]
    set sink [new Agent/TCPSink[expr {$kind == "" ? "" : "/$kind"}]]
    $ns attach-agent $server $sender
    $ns attach-agent $client $sink
    $ns connect $sender $sink
    $sender proc done {} "answered $i"
    lappend senders $sender
    set started($i) [expr $i * $is(stagger)]
    $ns at $started($i) "$sender advanceby [expr {$is(packets) > 0 ? $is(packets) : 1000000000}]"
}
proc report {} {
    global ns senders watch length took
    set acked 0
    set timeouts 0
    set again 0
    foreach sender $senders {
        incr acked [expr [$sender set ack_] + 1]
        incr timeouts [$sender set nrexmit_]
        incr again [$sender set nrexmitpack_]
    }
    set now [$ns now]
    $length newpoint $now [$length set lasty_]
    puts "acked $acked drops [$watch set pdrops_] queue [expr [$length set sum_] / $now] timeouts $timeouts again $again took {$took}"
    exit 0
}
$ns at $is(duration) report
$ns run
