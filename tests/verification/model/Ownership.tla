------------------------------ MODULE Ownership ------------------------------
(* One lock key on one server, one client of ours with a sequence of tenures,  *)
(* and a stranger who takes and gives the key in atomic steps (another client, *)
(* or another tenure of ours). design.md section 4, "At most once".            *)
(* One clock; the client's estimate of the server's clock is now - Lag.        *)
(* A request or a reply that is never delivered is a lost one; resends by us   *)
(* are the only duplicates. Bug is the set of mechanisms taken out.            *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS MaxTime, MaxTen, MaxCalls, MaxAtt, MaxRenew, MaxForce,
          CmdTime,        \* not-after = time of sending + CmdTime
          Lag,            \* 0: the estimate is exact; 1: it is behind, as a lower bound may be
          Leases, WdLease, \* explicit leases; lockWatchdogTimeout
          Bug

VARIABLES now, key, net, rep,          \* clock, server, requests and replies under way
          ten, st, holds, call,        \* the client: tenure, its state, open holds, call in progress
          una,                         \* its attempts without an answer
          dup,                         \* not-after of the first acquire's attempts unanswered at the grant
          comp,                        \* compensating releases still to be answered
          fresh,                       \* renewals under way that may still confirm a deadline
          calls, renews, forcedAt, force,
          rejected, endBy, overAt, dirty, bad   \* ghosts

vars == <<now, key, net, rep, ten, st, holds, call, una, dup, comp, fresh, calls, renews,
          forcedAt, force, rejected, endBy, overAt, dirty, bad>>
client == <<ten, st, holds, call, una, dup, comp, fresh, calls, renews, rejected, overAt, dirty>>

On(b)     == b \in Bug
Max(a, b) == IF a > b THEN a ELSE b
MaxOf(S)  == IF S = {} THEN -1 ELSE CHOOSE x \in S : \A y \in S : x >= y
MaxLease  == MaxOf(Leases \cup {WdLease})
Behind    == IF On("estimateAhead") THEN -1 ELSE Lag
Field(t)  == IF On("reuseId") THEN 1 ELSE t         \* the owner on the wire
Free      == [f |-> 0, g |-> 0, c |-> 0, x |-> 0]   \* f field, g (ghost) tenure, c count, x expiry
Stranger  == -1
NoCall    == [k |-> "none", id |-> 0, att |-> 0, l |-> 0, wd |-> FALSE, i |-> 0]

Kinds     == {"acq", "nest", "part"}
Fenced    == IF On("noNotAfter") THEN {} ELSE Kinds \cup (IF On("renewNoNotAfter") THEN {} ELSE {"ren"})
Passed(na) == now - Behind > na                        \* by the client's estimate
Open      == {u \in una : ~Passed(u.na)}            \* attempts that can still take effect
LastAcq(U) == MaxOf({u.na : u \in {v \in U : v.k = "acq"}})

Init == /\ now = 1 /\ key = Free /\ net = {} /\ rep = {}
        /\ ten = 0 /\ st = "idle" /\ holds = <<>> /\ call = NoCall
        /\ una = {} /\ dup = -1 /\ comp = {} /\ fresh = {} /\ calls = 0 /\ renews = 0
        /\ forcedAt = 0 /\ force = 0 /\ rejected = {} /\ dirty = FALSE /\ bad = {}
        /\ endBy = [t \in 0..MaxTen |-> "none"] /\ overAt = [t \in 0..MaxTen |-> 0]

(* ------------------------------- the server ------------------------------- *)
(* lua/lock: acquire (acq), acquire-nested (nest), release-partial (part), release (rel), renew (ren) *)
Script(m) ==
  LET mine == key.f = Field(m.t)
      top  == now + m.l
      ext  == IF On("noMax") THEN top ELSE Max(key.x, top)
      inc(c) == IF On("blind") THEN key.c + 1 ELSE c
      res(k, r) == [key |-> k, r |-> r]
  IN CASE m.k \in Fenced /\ m.na < now -> res(key, "late")
       [] m.k = "acq"  -> IF key.f = 0 \/ mine
                          THEN res([f |-> Field(m.t), g |-> m.t, c |-> inc(1), x |-> ext], "ok")
                          ELSE res(key, "busy")
       [] m.k = "nest" -> IF mine \/ (On("nestCreates") /\ key.f = 0)
                          THEN res([f |-> Field(m.t), g |-> m.t, c |-> inc(2), x |-> ext], "ok")
                          ELSE res(key, "gone")
       [] m.k = "part" -> IF mine THEN res([key EXCEPT !.c = 1, !.x = top], "ok")
                          ELSE res(key, "gone")
       [] m.k = "rel"  -> IF mine THEN res(Free, "ok") ELSE res(key, "gone")
       [] m.k = "ren"  -> IF mine THEN res([key EXCEPT !.x = Max(key.x, top)], "ok")
                          ELSE res(key, "gone")

Deliver(m) ==
  LET s == Script(m)
      changed == s.key # key
  IN /\ m \in net /\ net' = net \ {m} /\ key' = s.key
     /\ bad' = bad
          \cup (IF changed /\ m.id \in rejected /\ m.k \in Kinds THEN {"c"} ELSE {})
          \cup (IF changed /\ key.g # 0 /\ key.g # m.t THEN {"e"} ELSE {})
     /\ endBy' = IF changed /\ m.k = "rel" THEN [endBy EXCEPT ![key.g] = "own"]
                 ELSE IF changed /\ m.k = "acq" THEN [endBy EXCEPT ![m.t] = "none"] ELSE endBy
     /\ \/ rep' = rep                               \* reply lost
        \/ rep' = rep \cup {[k |-> m.k, id |-> m.id, att |-> m.att, t |-> m.t, l |-> m.l,
                             sent |-> m.sent, r |-> s.r]}
     /\ UNCHANGED <<now, forcedAt, force, client>>

Tick == /\ now < MaxTime /\ now' = now + 1
        /\ IF key.f # 0 /\ key.x <= now + 1
           THEN /\ key' = Free
                /\ endBy' = IF key.g > 0 THEN [endBy EXCEPT ![key.g] = "expired"] ELSE endBy
           ELSE UNCHANGED <<key, endBy>>
        /\ net' = {m \in net : ~(m.k \in Fenced /\ m.na < now + 1)}   \* they could only say "late"
        /\ UNCHANGED <<rep, forcedAt, force, bad, client>>

StrangerTakes == /\ key.f = 0 /\ key' = [f |-> Stranger, g |-> Stranger, c |-> 1, x |-> 99]
                 /\ UNCHANGED <<now, net, rep, forcedAt, force, endBy, bad, client>>
StrangerGives == /\ key.f = Stranger /\ key' = Free
                 /\ UNCHANGED <<now, net, rep, forcedAt, force, endBy, bad, client>>
(* DEL, force unlock, a restart that empties, a failover that loses the key *)
Force == /\ force < MaxForce /\ key.g > 0
         /\ force' = force + 1 /\ forcedAt' = now /\ key' = Free
         /\ endBy' = [endBy EXCEPT ![key.g] = "forced"]
         /\ UNCHANGED <<now, net, rep, bad, client>>

(* ------------------------------- the client ------------------------------- *)
Left(h) == h.dl - now
(* holds that the application may act on now *)
Claimed == IF st # "held" \/ call.k = "rel" THEN {}
           ELSE {i \in 1..Len(holds) : Left(holds[i]) > 0 /\ ~(call.k = "part" /\ i = call.i)}
(* src/holding/lease.ts: check, validFor *)
Valid   == st = "held" /\ \E i \in 1..Len(holds) : Left(holds[i]) > 0
Others(i) == [j \in 1..(Len(holds) - 1) |-> IF j < i THEN holds[j] ELSE holds[j + 1]]
TopDl(hs) == MaxOf({hs[j].dl : j \in 1..Len(hs)})

Msg(c, t) == [k |-> c.k, id |-> c.id, att |-> c.att, t |-> t, l |-> c.l,
              na |-> now - Behind + CmdTime, sent |-> now]
Send(c, t) == /\ net' = net \cup {Msg(c, t)}
              /\ una' = una \cup {[id |-> c.id, att |-> c.att, k |-> c.k, na |-> now - Behind + CmdTime]}
              /\ fresh' = IF c.k = "part" /\ ~On("renewConfirms") THEN {} ELSE fresh

Begin(c) == /\ call.k = "none" /\ calls < MaxCalls /\ calls' = calls + 1 /\ call' = c

(* src/waiting/wait-line.ts: #try *)
BeginAcquire == \E l \in Leases \cup {WdLease} :
  LET c == [k |-> "acq", id |-> calls + 1, att |-> 1, l |-> l, wd |-> l = WdLease, i |-> 0]
  IN /\ st = "idle" /\ ten < MaxTen /\ ten' = ten + 1 /\ st' = "acq"
     /\ Begin(c)
     /\ net' = net \cup {Msg(c, ten + 1)}
     /\ una' = {[id |-> c.id, att |-> 1, k |-> "acq", na |-> now - Behind + CmdTime]}
     /\ fresh' = {} /\ dirty' = FALSE
     /\ UNCHANGED <<holds, dup, comp, renews, rejected, overAt>>

(* src/holding/request-turns.ts: whenNoDoubt *)
Quarantine == ~On("noQuarantine") /\ \E u \in Open : u.k \in Kinds

(* src/holding/nested-hold.ts *)
BeginNested == \E l \in Leases \cup {WdLease} :
  LET c == [k |-> "nest", id |-> calls + 1, att |-> 1, l |-> l, wd |-> l = WdLease, i |-> 0]
  IN /\ Valid /\ Len(holds) = 1 /\ ~Quarantine /\ Begin(c) /\ Send(c, ten)
     /\ UNCHANGED <<ten, st, holds, dup, comp, renews, rejected, overAt, dirty>>

(* src/holding/tenure.ts: release *)
BeginPartial == \E i \in 1..2 :
  LET left == TopDl(Others(i)) - now
      c == [k |-> "part", id |-> calls + 1, att |-> 1, l |-> left, wd |-> FALSE, i |-> i]
  IN /\ st = "held" /\ Len(holds) = 2 /\ left > 0 /\ ~Quarantine /\ Begin(c) /\ Send(c, ten)
     /\ UNCHANGED <<ten, st, holds, dup, comp, renews, rejected, overAt, dirty>>

(* src/holding/tenure.ts: end; the last hold, or the others have nothing left *)
BeginRelease ==
  LET c == [k |-> "rel", id |-> calls + 1, att |-> 1, l |-> 0, wd |-> FALSE, i |-> 0]
  IN /\ st = "held" /\ Valid
     /\ (Len(holds) = 1 \/ \E i \in 1..2 : TopDl(Others(i)) <= now)
     /\ Begin(c) /\ Send(c, ten)
     /\ UNCHANGED <<ten, st, holds, dup, comp, renews, rejected, overAt, dirty>>

(* src/redis/script-request.ts: #again *)
Resend == /\ call.k # "none" /\ call.att < MaxAtt
          /\ call' = [call EXCEPT !.att = @ + 1]
          /\ Send([call EXCEPT !.att = @ + 1], ten)
          /\ UNCHANGED <<ten, st, holds, dup, comp, calls, renews, rejected, overAt, dirty>>

(* src/holding/watchdog.ts: #renewBatch, with Lease.takeRenewalTicket *)
Renew == /\ renews < MaxRenew /\ Valid /\ call.k # "rel" /\ \E i \in 1..Len(holds) : holds[i].wd
         /\ renews' = renews + 1
         /\ LET id == 100 + renews IN
            /\ net' = net \cup {[k |-> "ren", id |-> id, att |-> 1, t |-> ten, l |-> WdLease,
                                 na |-> now - Behind + CmdTime, sent |-> now]}
            /\ fresh' = IF (\E u \in Open : u.k = "part") /\ ~On("renewConfirms")
                        THEN fresh ELSE fresh \cup {id}
         /\ UNCHANGED <<ten, st, holds, call, una, dup, comp, calls, rejected, overAt, dirty>>

(* The tenure ends. Compensate if its outcome is in doubt, or if an attempt of  *)
(* its first acquire was unanswered when another one was granted (it may run    *)
(* after the release); never before the not-after of those attempts.            *)
End(U, doubt) ==
  LET acq == Max(dup, LastAcq(U))
      late == dup >= 0 /\ ~On("relNoComp")
  IN /\ st' = "idle" /\ dup' = -1 /\ holds' = <<>> /\ call' = NoCall /\ fresh' = {} /\ dirty' = FALSE
     /\ overAt' = [overAt EXCEPT ![ten] = now]
     /\ comp' = IF doubt \/ late
                THEN comp \cup {[t |-> ten, na |-> IF On("noWait") THEN -1 ELSE acq]} ELSE comp
     /\ una' = {}

Fail(id) == rejected' = rejected \cup {id}

(* src/waiting/wait-line.ts: #tried; src/waiting/grants.ts: grantIfTaken; src/holding/nested-hold.ts, tenure.ts: release, #settleEnd *)
HandleCall(r) ==
  LET U  == {u \in una : ~(u.id = r.id /\ u.att = r.att)}
      dl == (IF On("fromReply") THEN now ELSE r.sent) + r.l
      alive == now < dl \/ On("enterExpired")
      mine  == {u \in U : u.id = r.id}
      wait  == /\ \E u \in mine : ~Passed(u.na)
               /\ ~On("rejectEarly") /\ ~(On("deadGrantAtOnce") /\ r.r = "ok")
  IN
  /\ r.id = call.id
  /\ CASE r.k = "acq" /\ r.r = "ok" /\ alive ->
            /\ st' = "held" /\ holds' = <<[dl |-> dl, wd |-> call.wd]>> /\ call' = NoCall
            /\ una' = U /\ dup' = LastAcq(U) /\ UNCHANGED <<comp, fresh, overAt, dirty, rejected>>
            /\ bad' = IF forcedAt = 0 /\ key.g # ten THEN bad \cup {"dead"} ELSE bad
       [] r.k = "acq" /\ ~(r.r = "ok" /\ alive) /\ wait ->          \* another attempt may still act
            /\ una' = U /\ call' = IF r.r = "ok" THEN [call EXCEPT !.i = 1] ELSE call   \* 1: in doubt
            /\ UNCHANGED <<st, holds, dup, comp, fresh, overAt, dirty, rejected, bad>>
       [] r.k = "acq" /\ ~(r.r = "ok" /\ alive) /\ ~wait ->         \* busy, too late, granted too late
            /\ End(U, mine # {} \/ r.r = "ok" \/ call.i = 1) /\ Fail(r.id) /\ UNCHANGED bad
       [] r.k = "nest" /\ r.r = "ok" /\ alive ->
            /\ holds' = Append(holds, [dl |-> dl, wd |-> call.wd]) /\ call' = NoCall /\ una' = U
            /\ dirty' = FALSE /\ UNCHANGED <<st, dup, comp, fresh, overAt, rejected, bad>>
       [] r.k = "nest" /\ r.r = "ok" /\ ~alive /\ On("nestGivesBack") ->   \* "the tenure is released"
            /\ End(U, TRUE) /\ Fail(r.id)
            /\ bad' = IF Valid THEN bad \cup {"nestHarm"} ELSE bad
       [] r.k = "nest" /\ r.r \in {"ok", "late"} /\ ~(r.r = "ok" /\ alive) /\ ~On("nestGivesBack") ->
            IF \E u \in mine : ~Passed(u.na)
            THEN una' = U /\ dirty' = TRUE
                 /\ UNCHANGED <<st, holds, call, dup, comp, fresh, overAt, rejected, bad>>
            ELSE una' = U /\ call' = NoCall /\ dirty' = TRUE /\ Fail(r.id)
                 /\ UNCHANGED <<st, holds, dup, comp, fresh, overAt, bad>>
       [] r.k = "part" /\ r.r = "ok" ->
            /\ holds' = Others(call.i) /\ call' = NoCall /\ una' = U
            /\ dirty' = FALSE /\ UNCHANGED <<st, dup, comp, fresh, overAt, rejected, bad>>
       [] r.k \in {"nest", "part"} /\ r.r = "gone" ->                \* lost
            /\ End(U, FALSE) /\ UNCHANGED rejected
            /\ bad' = IF forcedAt = 0 /\ (Claimed # {} \/ call.k = "rel") THEN bad \cup {"falseLoss"} ELSE bad
       [] r.k = "rel" /\ r.r = "ok" -> End(U, FALSE) /\ UNCHANGED <<rejected, bad>>
       [] r.k = "rel" /\ r.r = "gone" ->
            LET inferred == /\ \E u \in mine : u.att < r.att         \* an earlier attempt unanswered
                            /\ (now < TopDl(holds) \/ On("gNoLease"))
            IN /\ End(U, FALSE) /\ UNCHANGED rejected
               /\ bad' = IF inferred /\ endBy[r.t] = "expired" THEN bad \cup {"g"} ELSE bad
       [] OTHER -> una' = U /\ UNCHANGED <<st, holds, call, dup, comp, fresh, overAt, dirty, rejected, bad>>
  /\ UNCHANGED renews

(* src/holding/lease.ts: renewed *)
HandleRenew(r) ==
  /\ r.k = "ren"
  /\ CASE r.r = "ok" /\ st = "held" /\ r.t = ten /\ r.id \in fresh ->
            /\ holds' = [i \in 1..Len(holds) |-> IF holds[i].wd /\ Left(holds[i]) > 0
                         THEN [holds[i] EXCEPT !.dl = Max(@, r.sent + r.l)] ELSE holds[i]]
            /\ fresh' = fresh \ {r.id}
            /\ UNCHANGED <<st, call, una, dup, comp, overAt, dirty, bad>>
       [] r.r = "gone" /\ st = "held" /\ r.t = ten /\ (call.k # "rel" \/ On("goneAnyTime")) ->
            /\ End(una, FALSE)
            /\ bad' = IF forcedAt = 0 /\ (Claimed # {} \/ call.k = "rel") THEN bad \cup {"falseLoss"} ELSE bad
       [] OTHER -> UNCHANGED <<st, holds, call, una, dup, comp, fresh, overAt, dirty, bad>>
  /\ UNCHANGED <<renews, rejected>>

(* src/redis/script-request.ts: answered, once the request is settled *)
HandleLate(r) == /\ r.k # "ren" /\ r.id # call.id
                 /\ una' = {u \in una : ~(u.id = r.id /\ u.att = r.att)}
                 /\ UNCHANGED <<st, holds, call, dup, comp, fresh, overAt, dirty, renews, rejected, bad>>

Handle(r) == /\ r \in rep /\ rep' = rep \ {r}
             /\ (HandleCall(r) \/ HandleRenew(r) \/ HandleLate(r))
             /\ UNCHANGED <<now, key, net, forcedAt, force, endBy, ten, calls>>

(* Doubt.settled. Outcome unknown after the last retry: reject when no attempt can act any more. *)
Reject == LET mine == {u \in una : u.id = call.id} IN
  /\ call.k # "none" /\ mine # {}
  /\ (call.k = "rel" \/ On("rejectEarly") \/ \A u \in mine : Passed(u.na))
  /\ Fail(call.id)
  /\ CASE call.k \in {"acq", "rel"} -> End(una, TRUE)
       [] call.k = "nest" -> /\ call' = NoCall /\ dirty' = TRUE
                             /\ UNCHANGED <<st, holds, una, dup, comp, fresh, overAt>>
       [] call.k = "part" -> /\ call' = NoCall /\ dirty' = TRUE /\ holds' = Others(call.i)
                             /\ UNCHANGED <<st, una, dup, comp, fresh, overAt>>   \* the hold is closed
  /\ UNCHANGED <<now, key, net, rep, forcedAt, force, endBy, bad, ten, calls, renews>>

(* src/holding/lease.ts: expire. The last deadline passes unconfirmed: lost, and released in case Redis has a longer lease. *)
Lose == /\ st = "held" /\ ~Valid /\ call.k # "rel"
        /\ End(una, ~On("loseNoComp"))
        /\ UNCHANGED <<now, key, net, rep, forcedAt, force, endBy, bad, ten, calls, renews, rejected>>

(* src/holding/compensations.ts *)
Compensate == \E c \in comp :
  /\ Passed(c.na) /\ comp' = comp \ {c}
  /\ IF key.f = Field(c.t)
     THEN /\ key' = Free /\ endBy' = [endBy EXCEPT ![key.g] = "own"]
          /\ bad' = IF key.g # c.t THEN bad \cup {"e"} ELSE bad
     ELSE UNCHANGED <<key, endBy, bad>>
  /\ UNCHANGED <<now, net, rep, forcedAt, force, ten, st, holds, call, una, dup, fresh, calls, renews,
                 rejected, overAt, dirty>>

Local == (BeginAcquire \/ BeginNested \/ BeginPartial \/ BeginRelease \/ Resend)
Next == \/ \E m \in net : Deliver(m)
        \/ \E r \in rep : Handle(r)
        \/ Tick \/ StrangerTakes \/ StrangerGives \/ Force
        \/ (BeginAcquire /\ UNCHANGED <<now, key, rep, forcedAt, force, endBy, bad>>)
        \/ ((BeginNested \/ BeginPartial \/ BeginRelease \/ Resend)
              /\ UNCHANGED <<now, key, rep, forcedAt, force, endBy, bad>>)
        \/ (Renew /\ UNCHANGED <<now, key, rep, forcedAt, force, endBy, bad>>)
        \/ Reject \/ Lose \/ Compensate
Spec == Init /\ [][Next]_vars

(* ------------------------------- invariants ------------------------------- *)
Over(t) == t < ten \/ st = "idle"

(* (a) a claimed hold is the server's hold and ends no sooner there; after a force the loser's
   deadline is not moved any more *)
KeyCovers == forcedAt = 0 => \A i \in Claimed : key.g = ten /\ key.x >= holds[i].dl
LoserTold == forcedAt > 0 => \A i \in Claimed : key.g # ten => holds[i].dl <= forcedAt + MaxLease
(* (b), (f) *)
Count == (net = {} /\ rep = {} /\ call.k = "none" /\ forcedAt = 0 /\ ~dirty /\ Claimed # {})
            => key.c = Len(holds)
(* (c), (e), (g), and a failed nested call harms no other hold *)
NoneLate     == "c" \notin bad
NoForeign    == "e" \notin bad
NoFalseOk    == "g" \notin bad
NoNestHarm   == "nestHarm" \notin bad
NoDeadGrant  == "dead" \notin bad
NoFalseLoss  == "falseLoss" \notin bad
(* (d) a hold nobody owns: somebody is about to take it back, and it is never renewed *)
OrphanKnown  == \A t \in 1..ten : (key.g = t /\ Over(t)) => \E c \in comp : c.t = t
OrphanEnds   == \A t \in 1..ten : (key.g = t /\ Over(t)) => key.x <= overAt[t] + CmdTime + MaxLease
=============================================================================
