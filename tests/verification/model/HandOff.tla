------------------------------- MODULE HandOff -------------------------------
(* The local hand-off: lua/lock/hand-off.lua gives the key from the releaser's  *)
(* tenure to the first local waiter's, or, when it asks for other subscribers   *)
(* and there are some, frees it. Owner 1 of our client holds the key, the       *)
(* others stand in line (src/waiting/wait-line.ts); a stranger takes the key    *)
(* whenever it is free. Plain acquires, releases and compensations are atomic   *)
(* here: Ownership.tla has their duplicates. A request or a reply that is never *)
(* delivered is a lost one. Bug is the set of mechanisms taken out.             *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS N, MaxTime, MaxAtt, MaxForce, CmdTime, Leases,
          Asks,      \* TRUE: the streak is at its limit, the script asks for other subscribers
          Bug

VARIABLES now, key, net, rep,
          lease, status, tid, dl,         \* per local waiter; tid = the tenure it has or is asking for
          h,                              \* the hand-off in progress, or NoHand
          undo,                           \* compensations: sets of tenures, each after a not-after
          forcedAt, force,
          rejected, late, bad             \* ghosts

vars == <<now, key, net, rep, lease, status, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>
On(b)    == b \in Bug
MaxOf(S) == IF S = {} THEN -1 ELSE CHOOSE x \in S : \A y \in S : x >= y
Owners   == 1..N
Free     == [f |-> 0, x |-> 0]
Stranger == -1
NoHand   == [o |-> 0, w |-> 0, from |-> 0, to |-> 0, att |-> 0, l |-> 0, sent1 |-> 0, nas |-> {}, una |-> 0]
Passed(na) == now > na

Init == /\ now = 1 /\ net = {} /\ rep = {} /\ h = NoHand /\ undo = {} /\ forcedAt = 0 /\ force = 0
        /\ lease \in [Owners -> Leases]
        /\ key = [f |-> 1, x |-> 1 + lease[1]]
        /\ status = [o \in Owners |-> IF o = 1 THEN "in" ELSE "wait"]
        /\ tid = [o \in Owners |-> o] /\ dl = [o \in Owners |-> IF o = 1 THEN 1 + lease[1] ELSE 0]
        /\ rejected = {} /\ late = FALSE /\ bad = {}

Waiting == {o \in Owners : status[o] = "wait"}
First   == CHOOSE o \in Waiting : \A p \in Waiting : o <= p

(* -------------------------- lua/lock/hand-off.lua -------------------------- *)
Deliver(m) ==
  LET tooLate == m.na < now /\ ~On("noNotAfter")
      mine    == ~tooLate /\ key.f = m.from
  IN /\ m \in net /\ net' = net \ {m}
     /\ \E others \in (IF Asks THEN BOOLEAN ELSE {FALSE}) :
          LET r == CASE tooLate -> "late" [] key.f = m.to -> "handed"
                     [] mine /\ others -> "published" [] mine -> "handed" [] OTHER -> "gone"
          IN /\ key' = IF mine THEN (IF others THEN Free ELSE [f |-> m.to, x |-> now + m.l]) ELSE key
             /\ \/ rep' = rep
                \/ rep' = rep \cup {[to |-> m.to, att |-> m.att, r |-> r, sent |-> m.sent]}
     /\ late' = (late \/ (mine /\ m.to \in rejected))
     /\ UNCHANGED <<now, lease, status, tid, dl, h, undo, forcedAt, force, rejected, bad>>

Tick == /\ now < MaxTime /\ now' = now + 1
        /\ key' = IF key.f # 0 /\ key.x <= now + 1 THEN Free ELSE key
        /\ net' = IF On("noNotAfter") THEN net ELSE {m \in net : m.na >= now + 1}
        /\ UNCHANGED <<rep, lease, status, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>
StrangerTakes == /\ key.f = 0 /\ key' = [f |-> Stranger, x |-> 99]
                 /\ UNCHANGED <<now, net, rep, lease, status, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>
StrangerGives == /\ key.f = Stranger /\ key' = Free
                 /\ UNCHANGED <<now, net, rep, lease, status, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>
Force == /\ force < MaxForce /\ key.f > 0 /\ key' = Free /\ force' = force + 1 /\ forcedAt' = now
         /\ UNCHANGED <<now, net, rep, lease, status, tid, dl, h, undo, rejected, late, bad>>

(* -------------- src/holding/tenure.ts, src/waiting/grants.ts --------------- *)
Request(x) == [from |-> x.from, to |-> x.to, att |-> x.att, l |-> x.l, na |-> now + CmdTime, sent |-> now]
New(o, w)  == [o |-> o, w |-> w, from |-> tid[o], to |-> tid[w], att |-> 1, l |-> lease[w],
               sent1 |-> now, nas |-> {now + CmdTime}, una |-> 1]

(* Tenure.release of the last hold, Grants.successorFor: a local call waits.   *)
(* The code hands nothing on to a shorter lease than what is left; here it may *)
Unlock(o) == /\ status[o] = "in" /\ now < dl[o] /\ Waiting # {} /\ h = NoHand
             /\ h' = New(o, First) /\ net' = net \cup {Request(New(o, First))}
             /\ status' = [status EXCEPT ![o] = "passing"]
             /\ UNCHANGED <<now, key, rep, lease, tid, dl, undo, forcedAt, force, rejected, late, bad>>
UnlockPlain(o) == /\ status[o] = "in" /\ now < dl[o] /\ Waiting = {} /\ h = NoHand
                  /\ key' = IF key.f = tid[o] THEN Free ELSE key
                  /\ status' = [status EXCEPT ![o] = "done"]
                  /\ UNCHANGED <<now, net, rep, lease, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>
(* LockEntry.#leave: time is up or the signal fired *)
Leave(w) == /\ status[w] = "wait" /\ status' = [status EXCEPT ![w] = "gone"]
            /\ UNCHANGED <<now, key, net, rep, lease, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>

(* ScriptRequest.#again: the same request, with the same owners *)
Resend == /\ h # NoHand /\ h.att < MaxAtt
          /\ LET other == On("repeatOther") /\ status[h.w] = "gone" /\ Waiting # {}
                 x == [h EXCEPT !.att = @ + 1, !.una = @ + 1, !.nas = @ \cup {now + CmdTime},
                                !.w = IF other THEN First ELSE @, !.to = IF other THEN tid[First] ELSE @]
             IN h' = x /\ net' = net \cup {Request(x)}
          /\ UNCHANGED <<now, key, rep, lease, status, tid, dl, undo, forcedAt, force, rejected, late, bad>>

Compensate(set, na) == undo' = undo \cup {[set |-> set, na |-> na]}
Fresh(w) == tid' = IF status[w] = "wait" /\ ~On("sameTenure") THEN [tid EXCEPT ![w] = @ + 10] ELSE tid

(* Grants.handOff, with the answer of one attempt *)
Handle(r) ==
  LET x == h
      d == (IF On("sentLast") THEN r.sent ELSE x.sent1) + x.l
      naLeft == IF x.una > 1 THEN MaxOf(x.nas) ELSE -1
      rest == Waiting \ {x.w}
  IN
  /\ h # NoHand /\ r \in rep /\ rep' = rep \ {r} /\ r.to = h.to
  /\ CASE r.r = "late" -> h' = [h EXCEPT !.una = @ - 1] /\ UNCHANGED <<net, status, tid, dl, undo, bad>>
       [] r.r = "handed" /\ now < d /\ status[x.w] = "wait" ->             \* #grant
            /\ status' = [status EXCEPT ![x.o] = "done", ![x.w] = "in"] /\ dl' = [dl EXCEPT ![x.w] = d]
            /\ h' = NoHand /\ UNCHANGED <<net, tid, undo, bad>>
       [] r.r = "handed" /\ now < d /\ status[x.w] # "wait" ->             \* Tenure.releaseUnclaimed: passed on
            /\ status' = [status EXCEPT ![x.o] = "done", ![x.w] = "passing"]
            /\ IF rest # {}
               THEN LET g == New(x.w, First) IN h' = g /\ net' = net \cup {Request(g)} /\ UNCHANGED undo
               ELSE h' = NoHand /\ Compensate({x.to}, naLeft) /\ UNCHANGED net
            /\ UNCHANGED <<tid, dl, bad>>
       [] r.r = "handed" /\ now >= d ->                                    \* granted too late to count
            /\ status' = [status EXCEPT ![x.o] = "done"] /\ h' = NoHand
            /\ Compensate({x.to}, naLeft) /\ Fresh(x.w) /\ UNCHANGED <<net, dl, bad>>
       [] r.r = "published" ->
            /\ status' = [status EXCEPT ![x.o] = "done"] /\ h' = NoHand /\ Fresh(x.w)
            /\ UNCHANGED <<net, dl, undo, bad>>
       [] r.r = "gone" ->         \* lost, unless an earlier attempt may have published it
            LET freed == (x.una > 1 /\ Asks /\ now < dl[x.o]) IN
            /\ status' = [status EXCEPT ![x.o] = IF freed THEN "done" ELSE "lost"] /\ h' = NoHand
            /\ Fresh(x.w)
            /\ bad' = IF freed /\ key.f = x.o THEN bad \cup {"freedNot"} ELSE bad
            /\ UNCHANGED <<net, dl, undo>>
  /\ UNCHANGED <<now, key, lease, forcedAt, force, rejected, late>>

(* a later answer of a request that is settled *)
HandleOld(r) == /\ r \in rep /\ (h = NoHand \/ h.to # r.to) /\ rep' = rep \ {r}
                /\ UNCHANGED <<now, key, net, lease, status, tid, dl, h, undo, forcedAt, force, rejected, late, bad>>

(* outcome unknown: unlock() rejects, one script removes both fields, the waiter gets another tenure *)
Reject == /\ h # NoHand
          /\ IF On("rejectEarly") THEN TRUE ELSE Passed(MaxOf(h.nas))
          /\ Compensate(IF On("undoOnlyOld") THEN {h.from} ELSE {h.from, h.to}, MaxOf(h.nas))
          /\ status' = [status EXCEPT ![h.o] = "done"] /\ rejected' = rejected \cup {h.to}
          /\ Fresh(h.w) /\ h' = NoHand
          /\ UNCHANGED <<now, key, net, rep, lease, dl, forcedAt, force, late, bad>>

(* src/holding/lease.ts: expire *)
Lose(o) == /\ status[o] = "in" /\ now >= dl[o] /\ status' = [status EXCEPT ![o] = "lost"]
           /\ Compensate({tid[o]}, -1)
           /\ UNCHANGED <<now, key, net, rep, lease, tid, dl, h, forcedAt, force, rejected, late, bad>>

(* src/holding/compensations.ts *)
Undo == \E u \in undo : /\ Passed(u.na) /\ undo' = undo \ {u}
                        /\ key' = IF key.f \in u.set THEN Free ELSE key
                        /\ UNCHANGED <<now, net, rep, lease, status, tid, dl, h, forcedAt, force, rejected, late, bad>>

(* LockEntry.#try of the head, when no hand-off names it *)
TryAcquire == /\ key.f = 0 /\ Waiting # {} /\ h = NoHand /\ (\A o \in Owners : status[o] # "in")
              /\ LET w == First IN
                 /\ key' = [f |-> tid[w], x |-> now + lease[w]]
                 /\ status' = [status EXCEPT ![w] = "in"] /\ dl' = [dl EXCEPT ![w] = now + lease[w]]
              /\ UNCHANGED <<now, net, rep, lease, tid, h, undo, forcedAt, force, rejected, late, bad>>

Next == \/ \E m \in net : Deliver(m)
        \/ \E r \in rep : Handle(r) \/ HandleOld(r)
        \/ Tick \/ StrangerTakes \/ StrangerGives \/ Force
        \/ \E o \in Owners : Unlock(o) \/ UnlockPlain(o) \/ Leave(o) \/ Lose(o)
        \/ Resend \/ Reject \/ Undo \/ TryAcquire
Spec == Init /\ [][Next]_vars

(* -------------------------------- invariants ------------------------------- *)
Claims(o) == status[o] = "in" /\ now < dl[o]
OneInside == forcedAt = 0 => Cardinality({o \in Owners : Claims(o)}) <= 1
KeyCovers == forcedAt = 0 => \A o \in Owners : Claims(o) => key.f = tid[o] /\ key.x >= dl[o]
LoserTold == forcedAt > 0 => \A o \in Owners : (Claims(o) /\ key.f # tid[o]) => dl[o] <= forcedAt + MaxOf(Leases)
(* once unlock() has rejected, its hand-off moves nothing any more *)
NoneLate  == ~late
(* "freed" is never said of a lock that the releaser still has *)
NoFalseOk == bad = {}
(* a field of ours that nobody claims is about to be moved or removed *)
OrphanKnown == (key.f > 0) =>
    \/ \E o \in Owners : status[o] = "in" /\ key.f = tid[o]
    \/ (h # NoHand /\ key.f \in {h.from, h.to})
    \/ \E u \in undo : key.f \in u.set
=============================================================================
