# One answer from each of n servers at once, over a switch whose last port holds buf packets:
#   ns incast.tcl AGENT OVERHEAD_S SEED N BYTES BUFFER DELAY PACKET
# prints "timeouts T retransmissions R". With LOOK=1 in the environment also what each sender knows at 0.28 s, before the first timer ends.
foreach {agent overhead seed n bytes buf delay packet} $argv break
global defaultRNG
$defaultRNG seed $seed

Agent/TCP set packetSize_ $packet
Agent/TCP set window_ 100000
Agent/TCP set windowInit_ 2
Agent/TCP set minrto_ 0.2
Agent/TCP set maxrto_ 60
Agent/TCP set tcpTick_ 0.000001
Agent/TCP set overhead_ $overhead

set ns [new Simulator]
set switch [$ns node]
set client [$ns node]
$ns duplex-link $switch $client 1Gb $delay DropTail
$ns queue-limit $switch $client $buf
$ns queue-limit $client $switch 100000

set done 0
proc report {} {
    global senders
    set timeouts 0
    set packets 0
    foreach sender $senders {
        incr timeouts [$sender set nrexmit_]
        incr packets [$sender set nrexmitpack_]
    }
    puts "timeouts $timeouts retransmissions $packets"
    exit 0
}
proc answered {} {
    global done n
    if {[incr done] == $n} { report }
}
proc look {} {
    global senders
    foreach sender $senders {
        set flight [expr [$sender set maxseq_] - [$sender set ack_]]
        puts "flight $flight duplicates [$sender set dupacks_] cwnd [$sender set cwnd_]"
    }
}

set senders {}
for {set i 0} {$i < $n} {incr i} {
    set server [$ns node]
    $ns duplex-link $server $switch 1Gb $delay DropTail
    $ns queue-limit $server $switch 100000
    set sender [new Agent/TCP/$agent]
    set sink [expr {$agent == "Sack1" ? [new Agent/TCPSink/Sack1] : [new Agent/TCPSink]}]
    $ns attach-agent $server $sender
    $ns attach-agent $client $sink
    $ns connect $sender $sink
    $sender proc done {} answered
    lappend senders $sender
    $ns at 0.1 "$sender advanceby [expr ($bytes + $packet - 1) / $packet]"
}
if {[info exists env(LOOK)]} { $ns at 0.28 look }
$ns at 60 report
$ns run
