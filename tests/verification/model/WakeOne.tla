------------------------------- MODULE WakeOne -------------------------------
(* Wake one: parked clients register in Redis; the script that frees the lock   *)
(* pops the oldest one that has a receiver and wakes it alone, and tells the    *)
(* next one to stand by (the deputy). A JVM ("J") shares the lock: it knows     *)
(* nothing of the registry and publishes on the shared channel only. There is   *)
(* no clock. A timer is an action that may fire once what it waits for has      *)
(* happened. Leases end only for owners that nobody will release. Probes (the   *)
(* rare looks of every parked client) are an action of their own: the runs      *)
(* without them show what the other mechanisms do, the runs with them that      *)
(* everything heals. One waiter a client: the head of its line.                 *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS C,                          \* clients
          MaxJoin, MaxJ,              \* arrivals in all; sections of the JVM
          MaxFault, MaxLost, MaxReg,  \* deaths and cuts; lost replies; losses of the registry
          Cuts, Deaths,               \* which kinds of cut {"down", "deaf"} and death there are
          Force,                      \* the JVM may force-unlock our holders
          OnlyParked,                 \* clients die only while nothing is under way to them
          Exact,                      \* PUBLISH tells whether there is a receiver
          Failover,                   \* a loss of the registry cuts all connections
          Probes, LongListen,         \* mechanisms that a run may do without
          Deputy,                     \* who looks if the chosen one does nothing: "next" in the registry, or "releaser"
          DutyRank, Bug

VARIABLES holder, orphan, reg, net,   \* server: owner (orphan: of a late attempt); registry, oldest first; messages
          st, tr, flag, stand, due,   \* client: state; its try; wake-up pending; deputy's timer; lease timer has fired
          timed,                      \* nothing but a probe or a lease timer caused the wake-up that is pending
          knows,                      \* who has seen the present hold, and so knows when its lease ends
          duty, foreign, sub, link,   \* told, or one of the first; holder was a JVM; shared channel; own channel
          lv, late, chk,              \* leave under way; unanswered attempt that may still run; releaser's timer
          faults, lost, jv, regs, joins

vars == <<holder, orphan, reg, net, st, tr, flag, stand, due, timed, knows, duty, foreign, sub, link, lv, late, chk,
          faults, lost, jv, regs, joins>>
Free == "free"
J == "jvm"
DeadJ == "dead jvm"
On(b) == b \in Bug
Counts == <<faults, lost, jv, regs, joins>>
Client == <<st, tr, flag, stand, due, timed, duty, foreign, sub, link, lv, late, chk>>

Init == /\ holder = Free /\ orphan = FALSE /\ reg = <<>> /\ net = {} /\ knows = {}
        /\ st = [c \in C |-> "idle"] /\ tr = [c \in C |-> "none"] /\ flag = [c \in C |-> FALSE]
        /\ timed = [c \in C |-> FALSE]
        /\ stand = [c \in C |-> FALSE] /\ due = [c \in C |-> FALSE] /\ duty = [c \in C |-> FALSE]
        /\ foreign = [c \in C |-> FALSE] /\ sub = [c \in C |-> "none"] /\ link = [c \in C |-> "up"]
        /\ lv = [c \in C |-> "none"] /\ late = [c \in C |-> FALSE] /\ chk = [c \in C |-> FALSE]
        /\ faults = 0 /\ lost = 0 /\ jv = 0 /\ regs = 0 /\ joins = 0

Live(c) == st[c] # "dead"
Counted(c) == link[c] # "down"                     \* PUBLISH counts this receiver
Hears(c) == Live(c) /\ link[c] = "up"
InReg(r, c) == \E i \in 1..Len(r) : r[i] = c
Without(r, c) == SelectSeq(r, LAMBDA x : x # c)
Rank(r, c) == Cardinality({i \in 1..Len(r) : \E j \in i..Len(r) : r[j] = c}) - 1
Told(m, c, k) == IF Hears(c) THEN m \cup {<<c, k>>} ELSE m
Parked(c) == st[c] = "wait" /\ tr[c] = "none" /\ ~flag[c]

(* ------------------------------ server: wake ------------------------------- *)
RECURSIVE Pop(_, _), Stand(_, _, _)
Pop(r, m) == IF r = <<>> THEN [r |-> r, m |-> m, w |-> FALSE]
             ELSE IF Counted(Head(r)) \/ ~Exact \/ On("noSkip")
                  THEN [r |-> Tail(r), m |-> Told(m, Head(r), "wake"), w |-> TRUE]
             ELSE Pop(Tail(r), m)
Stand(r, m, n) == IF n = 0 \/ r = <<>> \/ On("noDeputy") THEN [r |-> r, m |-> m]
                  ELSE IF Counted(Head(r)) \/ ~Exact \/ On("noSkip")
                       THEN LET a == Stand(Tail(r), Told(m, Head(r), "stand"), n - 1) IN [a EXCEPT !.r = <<Head(r)>> \o @]
                  ELSE Stand(Tail(r), m, n)
Shared(m) == m \cup {<<c, "shared">> : c \in {x \in C : sub[x] = "conf" /\ Hears(x)}}
Wake(r, m) == LET a == Pop(r, m) IN IF Deputy = "next" /\ a.w THEN Stand(a.r, a.m, 1) ELSE [r |-> a.r, m |-> a.m]
(* Deputy = "releaser": the client of a script that may have woken somebody looks itself after a while *)
Checks(c) == chk' = [chk EXCEPT ![c] = Deputy = "releaser" /\ ~On("noDeputy") /\ Live(c)]
(* the script that frees the lock: Redisson's message, then ours *)
FreedBy(r) == LET a == IF On("noWake") THEN [r |-> r, m |-> Shared(net)] ELSE Wake(r, Shared(net)) IN
              /\ holder' = Free /\ orphan' = FALSE /\ knows' = {} /\ reg' = a.r /\ net' = a.m

(* --------------------------------- clients --------------------------------- *)
Arrive(c) == /\ st[c] = "idle" /\ joins < MaxJoin /\ joins' = joins + 1
             /\ st' = [st EXCEPT ![c] = "wait"] /\ flag' = [flag EXCEPT ![c] = TRUE] /\ UNCHANGED timed
             /\ UNCHANGED <<holder, orphan, reg, net, tr, stand, due, knows, duty, foreign, sub, link, lv, late, faults, lost, jv, regs, chk>>

(* registration is part of the look, and so atomic with it; the place is kept *)
Registered(c) == IF InReg(reg, c) \/ On("noRegister") THEN reg ELSE Append(reg, c)
(* A message that comes between sending and running only leads to one more look: the step is one here. *)
Try(c) ==
  /\ st[c] = "wait" /\ tr[c] = "none" /\ flag[c]
  /\ flag' = [flag EXCEPT ![c] = FALSE] /\ stand' = [stand EXCEPT ![c] = FALSE] /\ due' = [due EXCEPT ![c] = FALSE]
  /\ timed' = [timed EXCEPT ![c] = FALSE]
  /\ IF holder = Free
     THEN /\ holder' = c /\ knows' = {} /\ tr' = [tr EXCEPT ![c] = "ok"]
          /\ reg' = (IF On("staysIn") THEN reg ELSE Without(reg, c)) /\ UNCHANGED duty
     ELSE /\ tr' = [tr EXCEPT ![c] = IF holder \in {J, DeadJ} THEN "busyF" ELSE "busy"]
          /\ knows' = knows \cup {c} /\ reg' = Registered(c) /\ UNCHANGED holder
          \* A look that nothing but a timer caused ends the duty of a client that is not among the first.
          /\ duty' = [duty EXCEPT ![c] = (@ /\ ~timed[c]) \/ chk[c]
                                         \/ (InReg(reg', c) /\ Rank(reg', c) < DutyRank)]
  /\ chk' = [chk EXCEPT ![c] = FALSE]                                   \* this look is the releaser's
  /\ UNCHANGED <<orphan, net, st, foreign, sub, link, lv, late, Counts>>
Leaving(c) == lv' = [lv EXCEPT ![c] = IF duty[c] THEN "duty" ELSE IF @ = "none" THEN "plain" ELSE @]
TryAnswer(c) ==
  /\ Live(c) /\ tr[c] \in {"ok", "busy", "busyF"} /\ tr' = [tr EXCEPT ![c] = "none"]
  /\ CASE tr[c] = "ok" ->
            /\ st' = [st EXCEPT ![c] = IF @ = "left" THEN "rel" ELSE "in"] /\ duty' = [duty EXCEPT ![c] = FALSE]
            /\ flag' = [flag EXCEPT ![c] = FALSE] /\ stand' = [stand EXCEPT ![c] = FALSE]
            /\ timed' = [timed EXCEPT ![c] = FALSE]
            /\ due' = [due EXCEPT ![c] = FALSE] /\ UNCHANGED <<foreign, lv>>
       [] tr[c] # "ok" /\ st[c] = "left" ->
            /\ st' = [st EXCEPT ![c] = "idle"] /\ Leaving(c) /\ duty' = [duty EXCEPT ![c] = FALSE]
            /\ due' = [due EXCEPT ![c] = FALSE] /\ UNCHANGED <<flag, timed, stand, foreign>>
       [] tr[c] # "ok" /\ st[c] = "wait" ->
            /\ foreign' = [foreign EXCEPT ![c] = tr[c] = "busyF" /\ ~On("noForeign")]
            /\ UNCHANGED <<st, flag, timed, stand, due, duty, lv>>
  /\ UNCHANGED <<holder, orphan, reg, net, knows, sub, link, late, Counts, chk>>

(* time limit or signal. The try under way settles the call. *)
Leave(c) == /\ st[c] = "wait" /\ flag' = [flag EXCEPT ![c] = FALSE] /\ timed' = [timed EXCEPT ![c] = FALSE] /\ stand' = [stand EXCEPT ![c] = FALSE]
            /\ due' = [due EXCEPT ![c] = FALSE]
            /\ IF tr[c] = "none"
               THEN st' = [st EXCEPT ![c] = "idle"] /\ Leaving(c) /\ duty' = [duty EXCEPT ![c] = FALSE]
               ELSE st' = [st EXCEPT ![c] = "left"] /\ UNCHANGED <<lv, duty>>
            /\ UNCHANGED <<holder, orphan, reg, net, tr, knows, foreign, sub, link, late, Counts, chk>>
(* The leave script. It may run behind a new registration of the same client, which then looks again. *)
LeaveExec(c) ==
  LET r == Without(reg, c)
      a == IF On("noPass") THEN [r |-> r, m |-> net]
           ELSE IF holder = Free THEN Wake(r, net)
           ELSE IF lv[c] = "duty" /\ ~On("noDutyPass") THEN Stand(r, net, IF On("dutyToOne") THEN 1 ELSE 2)
           ELSE [r |-> r, m |-> net] IN
  /\ lv[c] # "none" /\ lv' = [lv EXCEPT ![c] = "none"] /\ reg' = a.r /\ net' = a.m
  /\ flag' = [flag EXCEPT ![c] = @ \/ (st[c] = "wait" /\ ~On("leaveNoLook"))]
  /\ duty' = [duty EXCEPT ![c] = @ \/ (st[c] = "wait" /\ ~On("leaveNoLook"))]
  /\ timed' = [timed EXCEPT ![c] = @ /\ On("leaveNoLook")]
  /\ IF holder = Free /\ ~On("noPass") THEN Checks(c) ELSE UNCHANGED chk
  /\ UNCHANGED <<holder, orphan, st, tr, stand, due, knows, foreign, sub, link, late, Counts>>

(* A lost reply: the client repeats the release. *)
Release(c) == /\ st[c] \in {"in", "rel"}
              /\ IF holder = c /\ ~orphan THEN FreedBy(reg) ELSE UNCHANGED <<holder, orphan, knows, reg, net>>
              /\ \/ st' = [st EXCEPT ![c] = "idle"] /\ UNCHANGED lost
                 \/ lost < MaxLost /\ lost' = lost + 1 /\ st' = [st EXCEPT ![c] = "rel"]
              /\ Checks(c) /\ UNCHANGED <<tr, flag, timed, stand, due, duty, foreign, sub, link, lv, late, faults, jv, regs, joins>>
(* The release of a client with another waiter: it joins the line with the same script, and parks without a look of its *)
(* own. If nobody was woken, or the reply is lost, it looks. *)
ReleaseAndWait(c) ==
  LET a == Pop(reg, Shared(net))
      s == IF Deputy = "next" THEN Stand(Append(a.r, c), a.m, 1) ELSE [r |-> Append(a.r, c), m |-> a.m] IN
  /\ st[c] = "in" /\ joins < MaxJoin /\ joins' = joins + 1 /\ holder = c /\ ~orphan /\ ~On("noWake")
  /\ st' = [st EXCEPT ![c] = "wait"] /\ holder' = Free /\ knows' = {}
  /\ reg' = (IF a.w THEN s.r ELSE a.r) /\ net' = (IF a.w THEN s.m ELSE a.m)
  /\ \/ flag' = [flag EXCEPT ![c] = ~a.w /\ ~On("staysUnseen")] /\ UNCHANGED lost
     \/ lost < MaxLost /\ lost' = lost + 1 /\ flag' = [flag EXCEPT ![c] = TRUE]
  /\ stand' = [stand EXCEPT ![c] = Deputy = "releaser" /\ ~On("noDeputy")] /\ UNCHANGED timed
  /\ duty' = [duty EXCEPT ![c] = Deputy = "releaser" /\ ~On("noDuty")]     \* it is the deputy: if it leaves, that goes on
  /\ UNCHANGED <<orphan, tr, due, foreign, sub, link, lv, late, chk, faults, jv, regs>>
(* The lock lies free: wake the next one. It is held: somebody parked has to know that. *)
Check(c) == LET a == IF holder = Free THEN Pop(reg, net) ELSE Stand(reg, net, 1) IN
            /\ chk[c] /\ Live(c) /\ st[c] # "wait" /\ reg' = a.r /\ net' = a.m
            /\ chk' = [chk EXCEPT ![c] = holder = Free /\ a.r # reg]
            /\ UNCHANGED <<holder, orphan, st, tr, flag, timed, stand, due, knows, duty, foreign, sub, link, lv, late, Counts>>

Message(c, k) ==
  /\ <<c, k>> \in net /\ Hears(c) /\ net' = net \ {<<c, k>>}
  /\ CASE st[c] = "wait" ->
            /\ flag' = [flag EXCEPT ![c] = @ \/ k # "stand"] /\ stand' = [stand EXCEPT ![c] = @ \/ k = "stand"]
            /\ timed' = [timed EXCEPT ![c] = FALSE]
            /\ duty' = [duty EXCEPT ![c] = TRUE] /\ UNCHANGED lv
       [] st[c] = "left" ->                                             \* the leave that follows passes it on
            /\ duty' = [duty EXCEPT ![c] = @ \/ k # "shared"] /\ UNCHANGED <<flag, timed, stand, lv>>
       [] st[c] \in {"idle", "rel"} ->                                  \* an unused wake-up is passed on
            /\ lv' = [lv EXCEPT ![c] = IF k # "shared" /\ ~On("swallows") THEN "duty" ELSE @]
            /\ UNCHANGED <<flag, timed, stand, duty>>
       [] st[c] = "in" -> UNCHANGED <<flag, timed, stand, duty, lv>>           \* its own release wakes the next one
  /\ UNCHANGED <<holder, orphan, reg, st, tr, due, knows, foreign, sub, link, late, Counts, chk>>

Look(c) == flag' = [flag EXCEPT ![c] = TRUE] /\ timed' = [timed EXCEPT ![c] = FALSE] /\ duty' = [duty EXCEPT ![c] = TRUE]
LookByTimer(c) == flag' = [flag EXCEPT ![c] = TRUE] /\ timed' = [timed EXCEPT ![c] = TRUE] /\ UNCHANGED duty
StandTimer(c) == /\ stand[c] /\ Parked(c) /\ stand' = [stand EXCEPT ![c] = FALSE] /\ Look(c)
                 /\ UNCHANGED <<holder, orphan, reg, net, st, tr, due, knows, foreign, sub, link, lv, late, Counts, chk>>
LeaseTimer(c) == /\ due[c] /\ Parked(c) /\ due' = [due EXCEPT ![c] = FALSE] /\ LookByTimer(c)
                 /\ UNCHANGED <<holder, orphan, reg, net, st, tr, stand, knows, foreign, sub, link, lv, late, Counts, chk>>
Probe(c) == /\ Probes /\ Parked(c) /\ LookByTimer(c)
            /\ UNCHANGED <<holder, orphan, reg, net, st, tr, stand, due, knows, foreign, sub, link, lv, late, Counts, chk>>

(* the shared channel: only while on duty behind a JVM, or (LongListen) on duty for long *)
WantsShared(c) == Parked(c) /\ duty[c] /\ (foreign[c] \/ LongListen) /\ sub[c] = "none"
Listen(c) == /\ WantsShared(c) /\ link[c] = "up"
             /\ sub' = [sub EXCEPT ![c] = "sent"]
             /\ UNCHANGED <<holder, orphan, reg, net, st, tr, flag, timed, stand, due, knows, duty, foreign, link, lv, late, Counts, chk>>
SubExec(c) == /\ sub[c] = "sent" /\ Hears(c) /\ sub' = [sub EXCEPT ![c] = "conf"]
              /\ IF st[c] = "wait" /\ ~On("subNoLook") THEN Look(c) ELSE UNCHANGED <<flag, timed, duty>>
              /\ UNCHANGED <<holder, orphan, reg, net, st, tr, stand, due, knows, foreign, link, lv, late, Counts, chk>>
Unlisten(c) == /\ sub[c] = "conf" /\ Live(c) /\ (st[c] # "wait" \/ (Parked(c) /\ (~duty[c] \/ (~foreign[c] /\ ~LongListen))))
               /\ sub' = [sub EXCEPT ![c] = "none"] /\ net' = net \ {<<c, "shared">>}
               /\ UNCHANGED <<holder, orphan, reg, st, tr, flag, timed, stand, due, knows, duty, foreign, link, lv, late, Counts, chk>>

(* ---------------------------------- faults --------------------------------- *)
Deafened(c) == net' = {m \in net : m[1] # c}
Cut(c) == \E how \in Cuts :
          /\ faults < MaxFault /\ faults' = faults + 1 /\ Live(c) /\ link[c] = "up"
          /\ link' = [link EXCEPT ![c] = how] /\ Deafened(c) /\ sub' = [sub EXCEPT ![c] = IF @ = "sent" THEN "none" ELSE @]
          /\ UNCHANGED <<holder, orphan, reg, st, tr, flag, timed, stand, due, knows, duty, foreign, lv, late, lost, jv, regs, joins, chk>>
Reconnect(c) == /\ Live(c) /\ link[c] # "up" /\ link' = [link EXCEPT ![c] = "up"]
                /\ IF st[c] = "wait" /\ ~On("resubNoLook") THEN Look(c) ELSE UNCHANGED <<flag, timed, duty>>
                /\ UNCHANGED <<holder, orphan, reg, net, st, tr, stand, due, knows, foreign, sub, lv, late, Counts, chk>>
Die(c) == \E how \in Deaths :
          /\ faults < MaxFault /\ faults' = faults + 1 /\ Live(c) /\ (st[c] # "idle" \/ chk[c]) /\ chk' = [chk EXCEPT ![c] = FALSE]
          /\ OnlyParked => Parked(c) /\ ~stand[c] /\ ~due[c] /\ sub[c] = "none" /\ \A m \in net : m[1] # c
          /\ st' = [st EXCEPT ![c] = "dead"] /\ link' = [link EXCEPT ![c] = how] /\ Deafened(c)
          /\ flag' = [flag EXCEPT ![c] = FALSE] /\ stand' = [stand EXCEPT ![c] = FALSE]
          /\ timed' = [timed EXCEPT ![c] = FALSE]
          /\ due' = [due EXCEPT ![c] = FALSE] /\ duty' = [duty EXCEPT ![c] = FALSE]
          /\ tr' = [tr EXCEPT ![c] = "none"] /\ lv' = [lv EXCEPT ![c] = "none"] /\ sub' = [sub EXCEPT ![c] = "none"]
          /\ late' = [late EXCEPT ![c] = @ \/ flag[c]]                                \* its try may still run
          /\ UNCHANGED <<holder, orphan, reg, knows, foreign, lost, jv, regs, joins>>
(* A try without an answer: the client tries again; the attempt may run until its not-after. *)
TryLost(c) == /\ lost < MaxLost /\ lost' = lost + 1 /\ ~late[c] /\ duty' = [duty EXCEPT ![c] = TRUE]
              /\ timed' = [timed EXCEPT ![c] = FALSE]
              /\ \/ st[c] = "wait" /\ tr[c] = "none" /\ flag[c] /\ late' = [late EXCEPT ![c] = TRUE] /\ UNCHANGED <<flag, tr>>
                 \/ st[c] = "wait" /\ tr[c] \in {"busy", "busyF"} /\ tr' = [tr EXCEPT ![c] = "none"]
                    /\ flag' = [flag EXCEPT ![c] = TRUE] /\ UNCHANGED late
              /\ UNCHANGED <<holder, orphan, reg, net, st, stand, due, knows, foreign, sub, link, lv, faults, jv, regs, joins, chk>>
LateExec(c) == /\ late[c] /\ late' = [late EXCEPT ![c] = FALSE]
               /\ IF holder = Free THEN /\ holder' = c /\ orphan' = TRUE /\ knows' = {} /\ reg' = Without(reg, c)
                                        /\ flag' = [flag EXCEPT ![c] = @ \/ st[c] = "wait"]   \* its not-after passes
                                        /\ timed' = [timed EXCEPT ![c] = FALSE]
                                        /\ duty' = [duty EXCEPT ![c] = @ \/ st[c] = "wait"]
                  ELSE reg' = Registered(c) /\ UNCHANGED <<holder, orphan, knows, flag, timed, duty>>
               /\ UNCHANGED <<net, st, tr, stand, due, foreign, sub, link, lv, Counts, chk>>
LateOver(c) == /\ late[c] /\ late' = [late EXCEPT ![c] = FALSE]
               /\ UNCHANGED <<holder, orphan, reg, net, st, tr, flag, timed, stand, due, knows, duty, foreign, sub, link, lv, Counts, chk>>
Compensate(c) == /\ holder = c /\ orphan /\ Live(c) /\ FreedBy(reg) /\ Checks(c)
                 /\ UNCHANGED <<st, tr, flag, timed, stand, due, duty, foreign, sub, link, lv, late, Counts>>
(* nobody will release this hold *)
Abandoned == holder = DeadJ \/ (holder \in C /\ st[holder] = "dead")
LeaseEnd == /\ Abandoned /\ holder' = Free /\ orphan' = FALSE /\ knows' = {}
            /\ due' = [c \in C |-> due[c] \/ (c \in knows /\ st[c] \in {"wait", "left"} /\ ~On("noLeaseTimer"))]
            /\ UNCHANGED <<reg, net, st, tr, flag, timed, stand, duty, foreign, sub, link, lv, late, Counts, chk>>
(* FLUSHALL, or a failover to a replica without the registry *)
RegLoss == /\ regs < MaxReg /\ reg # <<>> /\ regs' = regs + 1 /\ reg' = <<>>
           /\ IF Failover THEN /\ link' = [c \in C |-> "down"] /\ net' = {}
                               /\ sub' = [c \in C |-> IF sub[c] = "sent" THEN "none" ELSE sub[c]]
              ELSE UNCHANGED <<link, net, sub>>
           /\ UNCHANGED <<holder, orphan, st, tr, flag, timed, stand, due, knows, duty, foreign, lv, late, faults, lost, jv, joins, chk>>

(* ----------------------------------- JVM ----------------------------------- *)
JTake == /\ holder = Free /\ jv < MaxJ /\ jv' = jv + 1 /\ holder' = J /\ knows' = {}
         /\ UNCHANGED <<orphan, reg, net, Client, faults, lost, regs, joins>>
JRelease == /\ holder = J /\ holder' = Free /\ knows' = {} /\ net' = Shared(net)
            /\ UNCHANGED <<orphan, reg, Client, Counts>>
JDie == /\ holder = J /\ faults < MaxFault /\ faults' = faults + 1 /\ holder' = DeadJ
        /\ UNCHANGED <<orphan, reg, net, knows, Client, lost, jv, regs, joins>>
JForce == /\ Force /\ holder \in C /\ ~orphan /\ st[holder] = "in" /\ jv < MaxJ /\ jv' = jv + 1
          /\ holder' = Free /\ knows' = {} /\ net' = Shared(net) /\ UNCHANGED <<orphan, reg, Client, faults, lost, regs, joins>>

Fair(c) == Try(c) \/ TryAnswer(c) \/ LeaveExec(c) \/ Release(c) \/ Check(c)
           \/ (\E k \in {"wake", "stand", "shared"} : Message(c, k)) \/ StandTimer(c) \/ LeaseTimer(c)
           \/ Listen(c) \/ SubExec(c) \/ Reconnect(c) \/ LateOver(c) \/ Compensate(c)
Next == \/ \E c \in C : \/ Fair(c) \/ Arrive(c) \/ ReleaseAndWait(c) \/ Leave(c) \/ Unlisten(c) \/ Cut(c) \/ Die(c)
                        \/ TryLost(c) \/ LateExec(c) \/ Probe(c)
        \/ LeaseEnd \/ RegLoss \/ JTake \/ JRelease \/ JDie \/ JForce
Spec == /\ Init /\ [][Next]_vars /\ WF_vars(LeaseEnd) /\ WF_vars(JRelease)
        /\ \A c \in C : WF_vars(Fair(c)) /\ WF_vars(Probe(c))

(* -------------------------------- properties ------------------------------- *)
(* A client that is inside has the lock. (A force unlock takes it away; its holder learns that from its renewal.) *)
Exclusion == /\ \A c, d \in C : st[c] = "in" /\ st[d] = "in" => c = d \/ Force
             /\ \A c \in C : st[c] = "in" => (holder = c /\ ~orphan) \/ Force
(* Nothing is left to happen by itself, the lock is free, and somebody is parked: a lost wake-up. *)
Quiet == /\ \A m \in net : ~Hears(m[1])
         /\ \A c \in C : /\ tr[c] = "none" /\ lv[c] = "none" /\ ~late[c] /\ ~chk[c]
                         /\ Live(c) => /\ link[c] = "up" /\ st[c] \notin {"left", "rel"} /\ sub[c] # "sent" /\ ~WantsShared(c)
                                       /\ st[c] = "wait" => ~flag[c] /\ ~stand[c] /\ ~due[c]
NoLostWakeUp == ~(Quiet /\ holder = Free /\ \E c \in C : st[c] = "wait")
(* While the lock is held and nothing is under way, somebody will notice its end. For a holder of ours: its release. *)
Noticed == (Quiet /\ holder \in {J, DeadJ} /\ \E c \in C : st[c] = "wait") =>
             \E c \in C : Parked(c) /\ (c \in knows \/ sub[c] = "conf")
(* Nobody is parked for ever beside a free lock. *)
Served == []<>(holder # Free \/ \A c \in C : st[c] # "wait")
=============================================================================
