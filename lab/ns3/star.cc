// One switch, N senders, one receiver, point-to-point links, BulkSend over TCP: what fanin calls a star. How to run: README.md.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <map>
#include <vector>

using namespace ns3;

// ---- the bottleneck's queue, the packet in transmission included --------------------------------
static double g_from = 0; // statistics count from here, s
static uint64_t g_waiting = 0, g_inTx = 0, g_max = 0, g_drops = 0, g_marks = 0, g_accepted = 0;
static double g_area = 0, g_last = 0;

static void
Account()
{
    double now = Simulator::Now().GetSeconds();
    if (now > g_from)
    {
        g_area += double(g_waiting + g_inTx) * (now - std::max(g_last, g_from));
    }
    g_last = now;
}

static bool g_printQueue = false;
static void
Changed()
{
    g_max = std::max(g_max, g_waiting + g_inTx);
    if (g_printQueue)
    {
        std::printf("queue %.9f %lu\n", Simulator::Now().GetSeconds(), (unsigned long)(g_waiting + g_inTx));
    }
}
static void Enqueued(Ptr<const Packet>) { Account(); ++g_waiting; ++g_accepted; Changed(); }
static void Dequeued(Ptr<const Packet>) { Account(); --g_waiting; }
static void TxBegin(Ptr<const Packet>) { Account(); g_inTx = 1; Changed(); }
static void TxEnd(Ptr<const Packet>) { Account(); g_inTx = 0; Changed(); }
static void Dropped(Ptr<const Packet>)
{
    ++g_drops;
    if (g_printQueue)
    {
        std::printf("drop %.9f\n", Simulator::Now().GetSeconds());
    }
}
static void QdEnqueued(Ptr<const QueueDiscItem>) { Account(); ++g_waiting; ++g_accepted; Changed(); }
static void QdDequeued(Ptr<const QueueDiscItem>) { Account(); --g_waiting; }
static void QdDropped(Ptr<const QueueDiscItem>) { Account(); ++g_drops; }
static void QdMarked(Ptr<const QueueDiscItem>, const char*) { ++g_marks; }

// ---- flows --------------------------------------------------------------------------------------
struct Flow
{
    uint64_t received = 0, receivedBefore = 0, timeouts = 0, recoveries = 0;
    Time last;
};
static std::vector<Flow> g_flows;
static uint64_t g_bytes = 0;
static bool g_printCwnd = false;

static void
Received(int i, Ptr<const Packet> p, const Address&)
{
    Flow& f = g_flows[i];
    f.received += p->GetSize();
    if (Simulator::Now().GetSeconds() < g_from)
    {
        f.receivedBefore = f.received;
    }
    f.last = Simulator::Now();
}
static void
Rto(int i, Time before, Time after)
{
    if (after == before + before || (after == Seconds(60) && before > Seconds(30)))
    {
        ++g_flows[i].timeouts;
        if (g_printCwnd)
        {
            std::printf("timeout %.9f %d\n", Simulator::Now().GetSeconds(), i);
        }
    }
}
static void
State(int i, TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t after)
{
    if (after == TcpSocketState::CA_RECOVERY)
    {
        ++g_flows[i].recoveries;
    }
    if (g_printCwnd)
    {
        std::printf("state %.9f %d %d->%d\n", Simulator::Now().GetSeconds(), i, before, after);
    }
}
static void
Cwnd(int i, uint32_t, uint32_t after)
{
    if (g_printCwnd)
    {
        std::printf("cwnd %.9f %d %u\n", Simulator::Now().GetSeconds(), i, after);
    }
}
static void
Ssthresh(int i, uint32_t, uint32_t after)
{
    if (g_printCwnd)
    {
        std::printf("ssthresh %.9f %d %u\n", Simulator::Now().GetSeconds(), i, after);
    }
}
static void
Watch(int i, Ptr<Application> app)
{
    Ptr<Socket> s = DynamicCast<BulkSendApplication>(app)->GetSocket();
    s->TraceConnectWithoutContext("RTO", MakeBoundCallback(&Rto, i));
    s->TraceConnectWithoutContext("CongState", MakeBoundCallback(&State, i));
    s->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&Cwnd, i));
    s->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&Ssthresh, i));
}

// NewReno that halves FlightSize as RFC 5681 and RFC 6675 say. ns-3 hands GetSsThresh the pipe after SACKed and lost segments were taken out.
static bool g_exitGrowth = true;
class TcpNewRenoFlight : public TcpNewReno
{
    bool m_left = false;

  public:
    void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t to) override
    {
        m_left = to == TcpSocketState::CA_OPEN && tcb->m_congState == TcpSocketState::CA_RECOVERY;
    }
    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments) override
    {
        bool skip = m_left && !g_exitGrowth;
        m_left = false;
        if (!skip)
        {
            TcpNewReno::IncreaseWindow(tcb, segments);
        }
    }
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::TcpNewRenoFlight").SetParent<TcpNewReno>().AddConstructor<TcpNewRenoFlight>();
        return tid;
    }
    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t) override
    {
        uint32_t flight = tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq;
        return std::max(2 * tcb->m_segmentSize, std::min(flight, tcb->m_cWnd.Get()) / 2);
    }
    Ptr<TcpCongestionOps> Fork() override { return CopyObject<TcpNewRenoFlight>(this); }
};
NS_OBJECT_ENSURE_REGISTERED(TcpNewRenoFlight);

int
main(int argc, char* argv[])
{
    std::string cc = "TcpNewReno", rate = "1Gbps", delay = "50us", bottleneck = "", bottleneckDelay = "", recovery = "classic";
    std::string minRto = "200ms", pcap = "", queue = "99p", limit = "", ackTimeout = "200ms";
    uint32_t n = 1, mss = 1460, iw = 10, ackEvery = 1, red = 0, seed = 1, ssthresh = 0;
    uint64_t bytes = 0;
    double spread = 0, duration = 10, stagger = 0, from = 0, jitter = 0;
    bool sack = true, timestamps = false, pacing = false, limited = true, hystart = false, friendly = true;
    CommandLine cmd;
    cmd.AddValue("cc", "TypeId", cc);
    cmd.AddValue("n", "senders", n);
    cmd.AddValue("rate", "of every link", rate);
    cmd.AddValue("delay", "of every link", delay);
    cmd.AddValue("bottleneck", "rate of the link to the receiver", bottleneck);
    cmd.AddValue("bottleneckDelay", "its delay", bottleneckDelay);
    cmd.AddValue("queue", "waiting packets at the bottleneck (fanin's buffer is one more)", queue);
    cmd.AddValue("red", "mark at this queue (RED as DCTCP wants it), 0: drop-tail", red);
    cmd.AddValue("bytes", "per sender, 0: without end", bytes);
    cmd.AddValue("duration", "s", duration);
    cmd.AddValue("stagger", "s between starts", stagger);
    cmd.AddValue("jitter", "s, uniform, of each start", jitter);
    cmd.AddValue("from", "statistics from here, s", from);
    cmd.AddValue("mss", "", mss);
    cmd.AddValue("iw", "", iw);
    cmd.AddValue("ackEvery", "", ackEvery);
    cmd.AddValue("ackTimeout", "", ackTimeout);
    cmd.AddValue("minRto", "", minRto);
    cmd.AddValue("sack", "", sack);
    cmd.AddValue("timestamps", "", timestamps);
    cmd.AddValue("pacing", "", pacing);
    cmd.AddValue("limited", "limited transmit", limited);
    cmd.AddValue("recovery", "classic or prr", recovery);
    cmd.AddValue("ssthresh", "initial, segments, 0: infinite", ssthresh);
    cmd.AddValue("exitGrowth", "TcpNewRenoFlight: grow on the ACK that ends a recovery", g_exitGrowth);
    cmd.AddValue("spread", "ns that each sender's link is longer than the one before", spread);
    cmd.AddValue("seed", "", seed);
    cmd.AddValue("pcap", "prefix", pcap);
    cmd.AddValue("printCwnd", "", g_printCwnd);
    cmd.AddValue("printQueue", "", g_printQueue);
    cmd.AddValue("hystart", "CUBIC's", hystart);
    cmd.AddValue("friendly", "CUBIC's", friendly);
    cmd.Parse(argc, argv);
    g_from = from;
    RngSeedManager::SetSeed(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + cc)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName(recovery == "prr" ? "ns3::TcpPrrRecovery" : "ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(iw));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(ackEvery));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Time(ackTimeout)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 26));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 26));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Time(minRto)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(timestamps));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(limited));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(hystart));
    Config::SetDefault("ns3::TcpCubic::TcpFriendliness", BooleanValue(friendly));
    if (ssthresh)
    {
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(ssthresh * mss));
    }
    if (pacing)
    {
        Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(true));
    }
    if (red)
    {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", QueueSizeValue(QueueSize("1000000p")));

    NodeContainer senders;
    senders.Create(n);
    Ptr<Node> sw = CreateObject<Node>();
    Ptr<Node> client = CreateObject<Node>();
    InternetStackHelper stack;
    stack.Install(senders);
    stack.Install(sw);
    stack.Install(client);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    for (uint32_t i = 0; i < n; ++i)
    {
        link.SetChannelAttribute("Delay", TimeValue(Time(delay) + PicoSeconds(int64_t(i * spread * 1000))));
        NetDeviceContainer d = link.Install(senders.Get(i), sw);
        addresses.Assign(d);
        addresses.NewNetwork();
    }
    if (!bottleneck.empty())
    {
        link.SetDeviceAttribute("DataRate", StringValue(bottleneck));
    }
    if (!bottleneckDelay.empty())
    {
        link.SetChannelAttribute("Delay", StringValue(bottleneckDelay));
    }
    link.SetChannelAttribute("Delay", StringValue(bottleneckDelay.empty() ? delay : bottleneckDelay));
    NetDeviceContainer d = link.Install(sw, client);
    Ipv4InterfaceContainer last = addresses.Assign(d);
    // Ipv4AddressHelper put a queue disc on every device: away with it, so that the device's queue is the only one.
    TrafficControlHelper none;
    for (uint32_t i = 0; i < sw->GetNDevices(); ++i)
    {
        if (DynamicCast<PointToPointNetDevice>(sw->GetDevice(i)))
        {
            none.Uninstall(sw->GetDevice(i));
        }
    }
    for (uint32_t i = 0; i < n; ++i)
    {
        none.Uninstall(senders.Get(i)->GetDevice(1));
    }
    none.Uninstall(client->GetDevice(1));
    Ptr<PointToPointNetDevice> port = DynamicCast<PointToPointNetDevice>(d.Get(0));
    if (red)
    {
        // RED with both thresholds at K and weight 1 marks by the present queue: ns-3's own DCTCP example. One packet waits in the
        // device, one is in transmission.
        port->GetQueue()->SetMaxSize(QueueSize("1p"));
        TrafficControlHelper tc;
        tc.SetRootQueueDisc("ns3::RedQueueDisc",
                            "MaxSize", StringValue(queue),
                            "MinTh", DoubleValue(red),
                            "MaxTh", DoubleValue(red),
                            "QW", DoubleValue(1),
                            "UseEcn", BooleanValue(true),
                            "UseHardDrop", BooleanValue(false),
                            "Gentle", BooleanValue(false),
                            "MeanPktSize", UintegerValue(mss + 42),
                            "LinkBandwidth", StringValue(bottleneck.empty() ? rate : bottleneck),
                            "LinkDelay", StringValue(bottleneckDelay.empty() ? delay : bottleneckDelay));
        QueueDiscContainer q;
        TrafficControlHelper tc2;
        q = tc.Install(d.Get(0));
        q.Get(0)->TraceConnectWithoutContext("Enqueue", MakeCallback(&QdEnqueued));
        q.Get(0)->TraceConnectWithoutContext("Dequeue", MakeCallback(&QdDequeued));
        q.Get(0)->TraceConnectWithoutContext("Drop", MakeCallback(&QdDropped));
        q.Get(0)->TraceConnectWithoutContext("Mark", MakeCallback(&QdMarked));
        port->GetQueue()->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueued));
        port->GetQueue()->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));
    }
    else
    {
        port->GetQueue()->SetMaxSize(QueueSize(queue));
        port->GetQueue()->TraceConnectWithoutContext("Enqueue", MakeCallback(&Enqueued));
        port->GetQueue()->TraceConnectWithoutContext("Dequeue", MakeCallback(&Dequeued));
        // Without a queue disc it is the traffic control layer that drops for a full device queue.
        sw->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
    }
    port->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&TxBegin));
    port->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&TxEnd));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    g_flows.resize(n);
    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < n; ++i)
    {
        uint16_t dst = 5000 + i;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), dst));
        ApplicationContainer sinks = sink.Install(client);
        sinks.Start(Seconds(0));
        sinks.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, int(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(last.GetAddress(1), dst));
        bulk.SetAttribute("MaxBytes", UintegerValue(bytes));
        bulk.SetAttribute("SendSize", UintegerValue(mss));
        ApplicationContainer app = bulk.Install(senders.Get(i));
        double start = 1.0 + stagger * i + (jitter > 0 ? uniform->GetValue(0, jitter) : 0);
        app.Start(Seconds(start));
        Simulator::Schedule(Seconds(start) + NanoSeconds(1), &Watch, int(i), app.Get(0));
    }
    g_from += 1.0;
    if (!pcap.empty())
    {
        link.EnablePcap(pcap, d.Get(0), false);
        link.EnablePcap(pcap, senders.Get(0)->GetDevice(1), false);
    }
    Simulator::Stop(Seconds(1.0 + duration));
    Simulator::Run();
    Account();
    double span = 1.0 + duration - g_from, sum = 0, squares = 0, finish = 0;
    uint64_t timeouts = 0, recoveries = 0, done = 0, total = 0;
    for (auto& f : g_flows)
    {
        double g = double(f.received - f.receivedBefore) * 8 / span;
        sum += g;
        squares += g * g;
        timeouts += f.timeouts;
        recoveries += f.recoveries;
        total += f.received;
        done += bytes && f.received >= bytes;
        finish = std::max(finish, f.last.GetSeconds() - 1.0);
    }
    std::printf("{\"ns3\":\"3.44\",\"cc\":\"%s\",\"n\":%u,\"goodput_mbps\":%.4f,\"jain\":%.4f,\"drops\":%lu,\"marks\":%lu,\"accepted\":%lu,"
                "\"timeouts\":%lu,\"recoveries\":%lu,\"mean_queue\":%.3f,\"max_queue\":%lu,\"done\":%lu,\"finish_us\":%.3f,\"bytes\":%lu}\n",
                cc.c_str(), n, sum / 1e6, squares > 0 ? sum * sum / (n * squares) : 0, (unsigned long)g_drops, (unsigned long)g_marks,
                (unsigned long)g_accepted, (unsigned long)timeouts, (unsigned long)recoveries, g_area / span, (unsigned long)g_max,
                (unsigned long)done, finish * 1e6, (unsigned long)total);
    Simulator::Destroy();
}
