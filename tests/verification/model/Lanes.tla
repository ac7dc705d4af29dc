-------------------------------- MODULE Lanes --------------------------------
(* Requests without an owner: for each lane of a client the server keeps one    *)
(* field "<sequence>:<answer>" (synchronizers/lanes.ts, lua/lib/lane.lua).      *)
(* Requests are repeated, delayed for ever, or arrive after their call has      *)
(* rejected. Not-after and the expiry of the lanes are left out: at most once   *)
(* has to hold without them. Bug is the set of mechanisms taken out.            *)
EXTENDS Integers, FiniteSets

CONSTANTS Lanes, Permits, MaxSeq, MaxAtt, Bug

VARIABLES free, stored,          \* server: permits that are free; lane -> the last request it carried, and its answer
          net, rep,              \* requests that may still arrive, answers that may still be read
          carried,               \* lane -> the request that it carries now
          owned,                 \* permits that the callers of a lane have
          effect                 \* ghost: <<lane, sequence>> -> permits that the request has taken in all

vars == <<free, stored, net, rep, carried, owned, effect>>
On(b)   == b \in Bug
Idle(s) == [seq |-> s, kind |-> "none", att |-> 0, at |-> "rest"]

Init == /\ free = Permits /\ net = {} /\ rep = {}
        /\ stored  = [l \in Lanes |-> [seq |-> 0, answer |-> "none"]]
        /\ carried = [l \in Lanes |-> Idle(0)]
        /\ owned   = [l \in Lanes |-> 0]
        /\ effect  = [l \in Lanes |-> [s \in 1..MaxSeq |-> 0]]

(* lua/semaphore/acquire.lua, release.lua and cancel.lua. A count-down is a release here: it is done or it is not, *)
(* and lua/request/cancel.lua ("stop") keeps one that has not come from being done later.                         *)
Deliver(m) ==
  LET last  == stored[m.lane]
      same  == last.seq = m.seq /\ ~On("runsAgain") /\ ~(On("busyNotStored") /\ last.answer = "busy")
      older == last.seq > m.seq /\ ~On("olderRuns")
      take  == m.kind = "acquire" /\ ~same /\ ~older /\ free > 0
      give  == m.kind \in {"release", "down"} /\ ~same /\ ~older
      back  == m.kind = "cancel" /\ same /\ last.answer = "ok"
      answer == CASE older -> "older"
                  [] m.kind = "cancel" -> "cancelled"
                  [] m.kind = "stop" -> IF same THEN last.answer ELSE "cancelled"
                  [] same -> last.answer
                  [] m.kind = "acquire" -> IF free > 0 THEN "ok" ELSE "busy"
                  [] OTHER -> "ok"
      d == IF take THEN 1 ELSE IF give \/ back THEN -1 ELSE 0
      keeps == \/ older
               \/ (same /\ m.kind # "cancel")
               \/ (m.kind \in {"cancel", "stop"} /\ ~same /\ On("cancelStoresNothing"))
  IN /\ m \in net /\ net' = net \ {m}
     /\ free' = free - d
     /\ effect' = [effect EXCEPT ![m.lane][m.seq] = @ + d]
     /\ stored' = IF keeps THEN stored ELSE [stored EXCEPT ![m.lane] = [seq |-> m.seq, answer |-> answer]]
     /\ rep' \in {rep, rep \cup {[lane |-> m.lane, seq |-> m.seq, kind |-> m.kind, answer |-> answer]}}
     /\ UNCHANGED <<carried, owned>>

Sent(l, c) == net' = net \cup {[lane |-> l, seq |-> c.seq, kind |-> c.kind, att |-> c.att]}

(* Lanes.take: the sequence is new, whatever the lane carried before *)
Begin(l) == /\ carried[l].at = "rest" /\ carried[l].seq < MaxSeq
            /\ \E k \in {"acquire", "release", "down"} :
                 /\ k # "acquire" => owned[l] > 0
                 /\ LET c == [seq |-> carried[l].seq + (IF On("oneSequence") /\ carried[l].seq > 0 THEN 0 ELSE 1),
                              kind |-> k, att |-> 1, at |-> "sent"]
                    IN carried' = [carried EXCEPT ![l] = c] /\ Sent(l, c)
                 /\ owned' = IF k = "acquire" THEN owned ELSE [owned EXCEPT ![l] = @ - 1]
            /\ UNCHANGED <<free, stored, rep, effect>>
(* ScriptRequest, and Compensations: the same request once more *)
Resend(l) == /\ carried[l].at \in {"sent", "settling"} /\ carried[l].att < MaxAtt
             /\ LET c == [carried[l] EXCEPT !.att = @ + 1] IN carried' = [carried EXCEPT ![l] = c] /\ Sent(l, c)
             /\ UNCHANGED <<free, stored, rep, owned, effect>>
(* Lanes.once and settle: the outcome is unknown. An acquire is taken back, a count-down stopped; a release goes on. *)
GiveUp(l) == /\ carried[l].at = "sent" /\ carried[l].kind \in {"acquire", "down"}
             /\ LET k == IF carried[l].kind = "acquire" THEN "cancel" ELSE "stop"
                    c == [carried[l] EXCEPT !.kind = k, !.att = 1, !.at = "settling"]
                IN Sent(l, c) /\ carried' = [carried EXCEPT ![l] = IF On("laneFreed") THEN Idle(c.seq) ELSE c]
             /\ UNCHANGED <<free, stored, rep, owned, effect>>
(* Lanes.free. A stopped count-down that has not been done leaves its permit with the caller. *)
Handle(r) == LET c == carried[r.lane] IN
  /\ r \in rep /\ rep' = rep \ {r}
  /\ IF c.seq = r.seq /\ c.kind = r.kind /\ c.at # "rest"
     THEN /\ carried' = [carried EXCEPT ![r.lane] = Idle(r.seq)]
          /\ owned' = IF \/ (r.kind = "acquire" /\ r.answer = "ok") \/ (r.kind = "stop" /\ r.answer = "cancelled")
                      THEN [owned EXCEPT ![r.lane] = @ + 1] ELSE owned
     ELSE UNCHANGED <<carried, owned>>
  /\ UNCHANGED <<free, stored, net, effect>>

Next == \/ \E m \in net : Deliver(m)
        \/ \E r \in rep : Handle(r)
        \/ \E l \in Lanes : Begin(l) \/ Resend(l) \/ GiveUp(l)
Spec == Init /\ [][Next]_vars

(* ------------------------------- invariants -------------------------------- *)
(* no request takes or gives more than once *)
AtMostOnce == \A l \in Lanes : \A s \in 1..MaxSeq : effect[l][s] \in {-1, 0, 1}
Sum(f) == LET RECURSIVE S(_)
              S(D) == IF D = {} THEN 0 ELSE LET x == CHOOSE y \in D : TRUE IN f[x] + S(D \ {x})
          IN S(Lanes)
Busy == Cardinality({l \in Lanes : carried[l].at # "rest"})
(* every permit is free, somebody's, or of a request whose lane is still taken *)
NoneLost == /\ free + Sum(owned) <= Permits
            /\ free + Sum(owned) + Busy >= Permits
(* what is settled stays settled, whatever arrives later *)
Settled == Busy = 0 => free + Sum(owned) = Permits
=============================================================================
