------------------------------ MODULE FairQueue ------------------------------
(* The fair lock's queue with Redisson's score arithmetic and our own set of    *)
(* live waiters beside it. Ours and JVM waiters share the queue; a JVM knows    *)
(* nothing of the alive set and sweeps stale heads by score. Scripts are atomic *)
(* and exactly once here, clocks agree, the remaining lease of the holder counts *)
(* as 0. Time stands still until every live client of ours has refreshed.       *)
(* lua/fair-lock, src/waiting/fair-places.ts.                                   *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Ours, Jvm, W,        \* W = fairLockWaitTimeout
          LV,                  \* fairWaiterTimeout
          MaxTime, MaxJoin,
          JvmWait,             \* the wait with which a JVM waiter queues
          AsyncGiveUp,         \* a JVM gives up through the async API: subtracts W, whatever it queued with
          Bug

VARIABLES now, holder, queue, score, alive, state, refreshed, joins, arrival, diedAt, evicted, overtook

vars == <<now, holder, queue, score, alive, state, refreshed, joins, arrival, diedAt, evicted, overtook>>
On(b) == b \in Bug
All == Ours \cup Jvm
None == 0
Outsider == 99
Wait(p) == IF p \in Ours THEN W ELSE JvmWait

Init == /\ now = 1 /\ holder = Outsider /\ queue = <<>> /\ score = [p \in All |-> 0]
        /\ alive = [p \in Ours |-> 0] /\ state = [p \in All |-> "new"]
        /\ refreshed = {} /\ joins = 0 /\ arrival = [p \in All |-> 0] /\ diedAt = [p \in All |-> 0]
        /\ evicted = {} /\ overtook = FALSE

InQ(q, p) == \E i \in 1..Len(q) : q[i] = p
Pos(q, p) == CHOOSE i \in 1..Len(q) : q[i] = p
Without(q, p) == SelectSeq(q, LAMBDA x : x # p)

RECURSIVE Sweep(_, _)     \* pop stale heads; ours never does so to a live one of ours
Sweep(q, bySelf) ==
  IF q # <<>> /\ score[Head(q)] <= now /\ ~(bySelf /\ Head(q) \in Ours /\ alive[Head(q)] > now)
  THEN Sweep(Tail(q), bySelf) ELSE q

(* give-up arithmetic: each owner behind p loses d; p goes *)
GiveUp(s, p, d) ==
  IF ~InQ(s.q, p) THEN s
  ELSE [q |-> Without(s.q, p),
        sc |-> [x \in All |-> IF InQ(s.q, x) /\ Pos(s.q, x) > Pos(s.q, p) THEN s.sc[x] - d ELSE s.sc[x]]]

(* ours: remove our dead wherever they stand *)
Dead(q) == {p \in Ours : InQ(q, p) /\ alive[p] <= now}
RECURSIVE RemoveDead(_, _)
RemoveDead(s, D) == IF D = {} THEN s ELSE LET p == CHOOSE x \in D : TRUE
                    IN RemoveDead(GiveUp(s, p, W), D \ {p})
Clean == IF On("noRemoval") THEN [q |-> queue, sc |-> score]
         ELSE RemoveDead([q |-> queue, sc |-> score], Dead(queue))

(* what a script of p sees after its first step *)
First(p) == LET c == IF p \in Ours THEN Clean ELSE [q |-> queue, sc |-> score]
            IN [c EXCEPT !.q = Sweep(c.q, p \in Ours)]

Gone(q) == {p \in All : InQ(queue, p) /\ ~InQ(q, p) /\ state[p] = "wait"}

(* acquire: take it, or queue up *)
Acquire(p) ==
  LET f == First(p) IN
  /\ state[p] \in {"new", "wait"}
  /\ state[p] = "new" => joins < MaxJoin
  /\ IF holder = None /\ (f.q = <<>> \/ Head(f.q) = p)
     THEN /\ holder' = p /\ state' = [state EXCEPT ![p] = "in"]
          /\ queue' = Without(f.q, p)
          /\ score' = [x \in All |-> IF InQ(f.q, x) /\ x # p THEN f.sc[x] - Wait(p) ELSE f.sc[x]]
          /\ UNCHANGED <<alive, joins, arrival, refreshed>>
     ELSE /\ ~InQ(f.q, p)
          /\ state' = [state EXCEPT ![p] = "wait"]
          /\ queue' = Append(f.q, p)
          /\ LET tail == (IF f.q = <<>> THEN now ELSE f.sc[f.q[Len(f.q)]]) + Wait(p)
                 full == now + W * (Len(f.q) + 1)
             IN score' = [f.sc EXCEPT ![p] = IF p \in Ours /\ full > tail /\ ~On("joinAsRedisson")
                                             THEN full ELSE tail]
          /\ alive' = IF p \in Ours THEN [alive EXCEPT ![p] = now + LV] ELSE alive
          /\ refreshed' = refreshed \cup {p}
          /\ joins' = joins + 1 /\ arrival' = [arrival EXCEPT ![p] = joins + 1] /\ UNCHANGED holder
  /\ evicted' = evicted \cup (Gone(queue') \ {p})
  /\ UNCHANGED <<now, diedAt, overtook>>

(* Once a second: alive again. Whoever stands before it takes off his own wait when he acquires, so a  *)
(* score is good for now + W times its place; when half a W of that is missing it is raised, and with it *)
(* everybody behind.                                                                                     *)
Refresh(p) ==
  LET f == First(p)
      place == IF On("scoreAlone") THEN 1 ELSE Pos(f.q, p)
      up == now + W * place - f.sc[p]
  IN
  /\ p \in Ours /\ state[p] = "wait" /\ p \notin refreshed
  /\ alive' = [alive EXCEPT ![p] = now + LV] /\ refreshed' = refreshed \cup {p}
  /\ queue' = f.q
  /\ score' = IF ~InQ(f.q, p) \/ 2 * up <= W \/ On("noRaise") THEN f.sc
              ELSE [x \in All |-> IF InQ(f.q, x) /\ (x = p \/ (~On("raiseAlone") /\ Pos(f.q, x) > Pos(f.q, p)))
                                  THEN f.sc[x] + up ELSE f.sc[x]]
  /\ evicted' = evicted \cup Gone(f.q)
  /\ UNCHANGED <<now, holder, state, joins, arrival, diedAt, overtook>>

Release == /\ holder # None /\ holder' = None
           /\ state' = IF holder \in All THEN [state EXCEPT ![holder] = "done"] ELSE state
           /\ UNCHANGED <<now, queue, score, alive, refreshed, joins, arrival, diedAt, evicted, overtook>>

(* Hand-over: the script that releases a lock of our client grants the lock to the first waiter p of that client, if p   *)
(* is the head of the queue. Otherwise the lock is free, and its message wakes the head. The outsider is our client's, too. *)
HandOver(p) ==
  LET f == First(p)
      takes == f.q # <<>> /\ (Head(f.q) = p \/ (On("handsToAny") /\ InQ(f.q, p)))
      rest == IF On("staysInQueue") THEN f.q ELSE Without(f.q, p) IN
  /\ holder \in Ours \cup {Outsider} /\ p \in Ours /\ state[p] = "wait"
  /\ \A x \in Ours : state[x] = "wait" => arrival[x] >= arrival[p]
  /\ holder' = IF takes THEN p ELSE None
  /\ state' = [x \in All |-> IF x = holder THEN "done" ELSE IF x = p /\ takes THEN "in" ELSE state[x]]
  /\ queue' = IF takes THEN rest ELSE f.q
  /\ score' = [x \in All |-> IF takes /\ x # p /\ InQ(f.q, x) THEN f.sc[x] - W ELSE f.sc[x]]
  /\ overtook' = (overtook \/ (takes /\ Pos(f.q, p) > 1))
  /\ evicted' = evicted \cup (Gone(f.q) \ {p})
  /\ UNCHANGED <<now, alive, refreshed, joins, arrival, diedAt>>
LeaveQueue(p) ==
  LET g == GiveUp([q |-> queue, sc |-> score], p, IF p \in Jvm /\ AsyncGiveUp THEN W ELSE Wait(p)) IN
  /\ state[p] = "wait" /\ state' = [state EXCEPT ![p] = "gone"] /\ queue' = g.q /\ score' = g.sc
  /\ UNCHANGED <<now, holder, alive, refreshed, joins, arrival, diedAt, evicted, overtook>>
Die(p) == /\ p \in Ours /\ state[p] = "wait" /\ state' = [state EXCEPT ![p] = "dead"]
          /\ diedAt' = [diedAt EXCEPT ![p] = now]
          /\ UNCHANGED <<now, holder, queue, score, alive, refreshed, joins, arrival, evicted, overtook>>
Tick == /\ now < MaxTime /\ \A p \in Ours : state[p] = "wait" => p \in refreshed
        /\ now' = now + 1 /\ refreshed' = {}
        /\ UNCHANGED <<holder, queue, score, alive, state, joins, arrival, diedAt, evicted, overtook>>

Next == Tick \/ Release \/ \E p \in All : Acquire(p) \/ HandOver(p) \/ Refresh(p) \/ LeaveQueue(p) \/ Die(p)
Spec == Init /\ [][Next]_vars

(* a live waiter of ours is never removed by anybody but itself *)
LiveStay  == Ours \cap evicted = {}
(* each owner behind keeps a longer wait than the owner before it: Redisson's arithmetic depends on that *)
Gap       == \A i \in 1..(Len(queue) - 1) : score[queue[i + 1]] >= score[queue[i]] + Wait(queue[i + 1])
(* with a live waiter of ours there, a dead one of ours is out LV + 1 after its death *)
DeadOut   == \A p \in Ours : (state[p] = "dead" /\ InQ(queue, p) /\ now > diedAt[p] + LV)
                => \A o \in Ours : state[o] = "wait" => o \notin refreshed
(* a hand-over passes no waiter over, and who has the lock has no place *)
InTurn    == ~overtook
HolderOut == holder # None => ~InQ(queue, holder)
Fifo      == \A i \in 1..(Len(queue) - 1) : arrival[queue[i]] < arrival[queue[i + 1]]
=============================================================================
