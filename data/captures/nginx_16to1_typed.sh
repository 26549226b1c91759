# on each server
fanin-host load trim --param rate_pps=24382
mkdir -p /run/fanin; [ -e /run/fanin/10.9.0.1 ] || ip route save exact 10.9.0.1 > /run/fanin/10.9.0.1
ip route replace 10.9.0.1 congctl fanin_trim rto_min 5ms $(ip -o route get fibmatch 10.9.0.1 | sed -E 's/^[^ ]+//; s/ (linkdown|dead)|\\//g; s/ (congctl|rto_min)( lock)? [^ ]+//g')
# on the aggregator
mkdir -p /run/fanin; for h in 10.9.1.1 10.9.1.2 10.9.1.3 10.9.1.4 10.9.1.5 10.9.1.6 10.9.1.7 10.9.1.8 10.9.1.9 10.9.1.10 10.9.1.11 10.9.1.12 10.9.1.13 10.9.1.14 10.9.1.15 10.9.1.16; do [ -e /run/fanin/$h ] || ip route save exact $h > /run/fanin/$h; done
for h in 10.9.1.1 10.9.1.2 10.9.1.3 10.9.1.4 10.9.1.5 10.9.1.6 10.9.1.7 10.9.1.8 10.9.1.9 10.9.1.10 10.9.1.11 10.9.1.12 10.9.1.13 10.9.1.14 10.9.1.15 10.9.1.16; do ip route replace $h rto_min 5ms quickack 1 $(ip -o route get fibmatch $h | sed -E 's/^[^ ]+//; s/ (linkdown|dead)|\\//g; s/ (rto_min|quickack)( lock)? [^ ]+//g'); done
