----------------------------- MODULE KeptReaders -----------------------------
(* Kept read halves: src/waiting/hand-overs/reader-streak.ts and kept-locks.ts. *)
(* Processes read under owners of their own, and keep them for the next reads.  *)
(* In each process, a writer may wait. Requests are atomic, except the question *)
(* whether others wait, whose answer may be late. Leases, doubts, cuts and      *)
(* losses are those of LocalHandOver.tla: a kept owner is followed by the same  *)
(* rules. Bug is the set of rules taken out.                                    *)
EXTENDS Integers, FiniteSets

CONSTANTS MaxTime, Procs, Local, Keep, MaxOwn, MaxWrites, Bug

VARIABLES now,
          ten,    \* owners of readers: inside a section, or kept until u; asked for at c
          red,    \* owners of readers in Redis
          own,    \* the newest owner
          w,      \* writers: "away", "waits" (subscribed), "writes"
          since,  \* since when each writer waits
          writes, \* number of writers that came
          ask,    \* questions: r is "idle", "sent", or the answer that is under way; s is when it was sent
          until,  \* when the streak of each process ends
          bad

vars == <<now, ten, red, own, w, since, writes, ask, until, bad>>
On(b) == b \in Bug
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Kept(p) == {t \in ten : t.p = p /\ t.st = "kept"}
Ids(S) == {t.id : t \in S}

Init == /\ now = 1 /\ ten = {} /\ red = {} /\ own = 0 /\ w = [p \in Procs |-> "away"] /\ since = [p \in Procs |-> 0]
        /\ writes = 0 /\ ask = [p \in Procs |-> [r |-> "idle", s |-> 0]] /\ until = [p \in Procs |-> 0] /\ bad = {}

Acquire(p) == /\ own < MaxOwn /\ \A q \in Procs : w[q] # "writes"
              /\ own' = own + 1 /\ red' = red \cup {own + 1}
              /\ ten' = ten \cup {[id |-> own + 1, p |-> p, st |-> "reads", c |-> now, u |-> 0]}
              /\ UNCHANGED <<now, w, since, writes, ask, until, bad>>

(* The read does not wait for the answer. *)
Ask(p) == /\ ask[p].r = "idle" /\ now >= until[p] /\ (\E t \in ten : t.p = p /\ t.st = "reads")
          /\ ask' = [ask EXCEPT ![p] = [r |-> "sent", s |-> now]]
          /\ UNCHANGED <<now, ten, red, own, w, since, writes, until, bad>>
Run(p) == /\ ask[p].r = "sent"
          /\ LET others == \E q \in Procs : q # p /\ w[q] = "waits"
             IN ask' = [ask EXCEPT ![p].r = IF others /\ ~On("unasked") THEN "some" ELSE "none"]
          /\ UNCHANGED <<now, ten, red, own, w, since, writes, until, bad>>
Reply(p) == /\ ask[p].r \in {"none", "some"} /\ ask' = [ask EXCEPT ![p].r = "idle"]
            /\ until' = IF ask[p].r = "some" THEN until
                        ELSE [until EXCEPT ![p] = (IF On("fromReply") THEN now ELSE ask[p].s) + Local]
            /\ UNCHANGED <<now, ten, red, own, w, since, writes, bad>>

InStreak(t) == now < t.c + Local /\ (now < until[t.p] \/ On("endless"))
Follow(t) == /\ t.st = "kept" /\ InStreak(t)
             /\ ten' = (IF On("shared") THEN ten ELSE ten \ {t}) \cup {[t EXCEPT !.st = "reads", !.u = 0]}
             /\ bad' = bad \cup (IF w[t.p] = "waits" THEN {"overtakes"} ELSE {})
                           \cup (IF \E q \in Procs : w[q] = "waits" /\ now >= since[q] + Local THEN {"starves"} ELSE {})
             /\ UNCHANGED <<now, red, own, w, since, writes, ask, until>>
KeepIt(t) == /\ t.st = "reads" /\ InStreak(t) /\ (w[t.p] # "waits" \/ On("besideWriter"))
             /\ LET u == Min({now + Keep, t.c + Local} \cup (IF On("keepsPast") \/ On("endless") THEN {} ELSE {until[t.p]}))
                IN ten' = (ten \ {t}) \cup {[t EXCEPT !.st = "kept", !.u = u]}
             /\ UNCHANGED <<now, red, own, w, since, writes, ask, until, bad>>
(* The end of a section, or of the time of a kept owner. *)
Release(t) == /\ ten' = ten \ {t} /\ red' = red \ {t.id}
              /\ UNCHANGED <<now, own, w, since, writes, ask, until, bad>>

(* A writer waits: its own process releases what it keeps for readers. *)
Comes(p) == /\ w[p] = "away" /\ writes < MaxWrites /\ writes' = writes + 1 /\ since' = [since EXCEPT ![p] = now]
            /\ IF On("otherHalf") /\ Kept(p) # {}
               THEN \E t \in Kept(p) : ten' = ten \ {t} /\ red' = red \ {t.id} /\ w' = [w EXCEPT ![p] = "writes"]
               ELSE /\ w' = [w EXCEPT ![p] = "waits"]
                    /\ IF On("keepsOn") THEN UNCHANGED <<ten, red>>
                       ELSE ten' = ten \ Kept(p) /\ red' = red \ Ids(Kept(p))
            /\ UNCHANGED <<now, own, ask, until, bad>>
Enters(p) == /\ w[p] = "waits" /\ red = {} /\ (\A q \in Procs : w[q] # "writes") /\ w' = [w EXCEPT ![p] = "writes"]
             /\ UNCHANGED <<now, ten, red, own, since, writes, ask, until, bad>>
Leaves(p) == /\ w[p] = "writes" /\ w' = [w EXCEPT ![p] = "away"]
             /\ UNCHANGED <<now, ten, red, own, since, writes, ask, until, bad>>

(* The timer of a kept owner is not late. *)
Tick == /\ now < MaxTime /\ (\A t \in ten : t.st = "kept" => now < t.u) /\ now' = now + 1
        /\ UNCHANGED <<ten, red, own, w, since, writes, ask, until, bad>>

Next == \/ \E p \in Procs : Acquire(p) \/ Ask(p) \/ Run(p) \/ Reply(p) \/ Comes(p) \/ Enters(p) \/ Leaves(p)
        \/ \E t \in ten : Follow(t) \/ KeepIt(t) \/ Release(t)
        \/ Tick \/ (now = MaxTime /\ UNCHANGED vars)
Spec == Init /\ [][Next]_vars

(* -------------------------------- invariants ------------------------------- *)
Exclusion == \A p \in Procs : w[p] = "writes" => /\ \A t \in ten : t.st # "reads"
                                                 /\ \A q \in Procs : w[q] = "writes" => q = p
(* each section, and each kept owner, has an owner of its own in Redis *)
Covered == /\ \A t \in ten : t.id \in red
           /\ \A t, s \in ten : t.id = s.id => t = s
(* no read begins against a rule *)
BeginsByRule == bad = {}
KeptInTime == \A t \in ten : t.st = "kept" => now <= t.u
(* what no call uses keeps a writer out for `local` at most, and a writer of the same process not at all *)
WriterWaits == \A p \in Procs : w[p] = "waits" => /\ Kept(p) = {}
                                                  /\ now > since[p] + Local => \A t \in ten : t.st # "kept"
=============================================================================
