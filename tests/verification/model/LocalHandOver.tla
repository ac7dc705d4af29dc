---------------------------- MODULE LocalHandOver ----------------------------
(* Local hand-over and keeping: src/waiting/hand-overs/local-hand-over.ts. The  *)
(* sections of one client follow one another under one owner, without a         *)
(* request, within the rules of that file. Acquires, scripted hand-overs and    *)
(* releases are atomic here: Ownership.tla and HandOff.tla have their           *)
(* duplicates. Only two of them may be late: a second attempt of the acquire    *)
(* that started the streak, and a request of a section that sets a shorter      *)
(* lease. A stranger takes the key whenever it is free. Bug is the set of       *)
(* rules taken out.                                                             *)
EXTENDS Integers, FiniteSets

CONSTANTS MaxTime, Leases, Local, Keep, MaxSections, MaxLost, MaxOwn,
          Fenced,    \* TRUE: each hold has a token of its own
          Bug

VARIABLES now, key,
          own,       \* the newest owner
          sec,       \* the section, or NoSec
          conf,      \* what Redis has confirmed of the owner, or NoConf
          net,       \* late requests
          undo,      \* owners that are about to be released
          session,   \* changes when the connection is cut or the clock jumps
          forcing,   \* a forced unlock by this client: "no", "sent", "run"
          count,     \* sections that followed locally since a request asked for other clients
          kept,      \* when a kept lock has to be released; 0: none is kept
          tokens, lost, bad

vars == <<now, key, own, sec, conf, net, undo, session, forcing, count, kept, tokens, lost, bad>>
On(b) == b \in Bug
Free     == [f |-> 0, x |-> 0]
Stranger == -1
NoSec    == [o |-> 0, dl |-> 0, stray |-> 0]
NoConf   == [o |-> 0, c |-> 0, x |-> 0, s |-> 0, sent |-> FALSE, over |-> FALSE]

Init == /\ now = 1 /\ key = Free /\ own = 0 /\ sec = NoSec /\ conf = NoConf /\ net = {} /\ undo = {}
        /\ session = 0 /\ forcing = "no" /\ count = 0 /\ kept = 0 /\ tokens = 0 /\ lost = 0 /\ bad = {}

(* A request that Redis answers gives the lock to a new owner and starts a streak. *)
Granted(l, stray) ==
  LET o == own + 1 IN
  /\ own' = o /\ key' = [f |-> o, x |-> now + l + (IF On("asksForLease") THEN 0 ELSE Local)]
  /\ sec' = [o |-> o, dl |-> now + l, stray |-> IF stray THEN now + 1 ELSE 0]
  /\ conf' = [o |-> o, c |-> now, x |-> now + l + Local, s |-> session, sent |-> FALSE, over |-> FALSE]
  /\ net' = IF stray THEN net \cup {[k |-> "acquire", o |-> o, l |-> l + Local, na |-> now + 1]} ELSE net
  /\ tokens' = tokens + 1 /\ kept' = 0

Acquire(l) == /\ own < MaxOwn /\ sec = NoSec /\ kept = 0 /\ key.f = 0 /\ \E stray \in BOOLEAN : Granted(l, stray)
              /\ count' = 0 /\ UNCHANGED <<now, undo, session, forcing, lost, bad>>

Inside == sec # NoSec /\ now < sec.dl
(* A scripted hand-over confirms, and asks whether other clients wait. *)
HandOver(l) ==
  /\ own < MaxOwn /\ Inside /\ sec.stray < now /\ count' = 0
  /\ IF key.f = sec.o THEN Granted(l, FALSE)
     ELSE sec' = NoSec /\ conf' = NoConf /\ UNCHANGED <<own, key, net, tokens, kept>>
  /\ UNCHANGED <<now, undo, session, forcing, lost, bad>>

(* ------------------------- the rules, in their order ------------------------ *)
MayFollow(l, stray) ==
  /\ (~conf.sent \/ On("afterRequest")) /\ (stray < now \/ On("whileStray"))
  /\ now + l <= conf.x \/ On("uncovered")
  /\ conf.s = session \/ On("afterCut")
  /\ now < conf.c + Local \/ On("endless")
  /\ count < MaxSections \/ On("uncounted")
  /\ ~Fenced \/ On("fencedFollows")
  /\ forcing = "no" \/ On("whileForcing")
  /\ ~conf.over \/ On("afterOther")
Follow(l, stray) ==
  /\ conf # NoConf /\ MayFollow(l, stray)
  /\ sec' = [o |-> conf.o, dl |-> now + l, stray |-> 0] /\ count' = count + 1 /\ kept' = 0
  /\ bad' = bad \cup (IF conf.s # session THEN {"afterCut"} ELSE {})
                \cup (IF now >= conf.c + Local THEN {"late"} ELSE {})
                \cup (IF count >= MaxSections THEN {"unfair"} ELSE {})
                \cup (IF Fenced THEN {"sameToken"} ELSE {})
                \cup (IF forcing = "run" THEN {"afterForce"} ELSE {})
                \cup (IF conf.over THEN {"afterOther"} ELSE {})
FollowSection(l) == /\ Inside /\ Follow(l, sec.stray)
                    /\ UNCHANGED <<now, key, own, conf, net, undo, session, forcing, tokens, lost>>
FollowKept(l) == /\ kept > 0 /\ Follow(l, 0)
                 /\ UNCHANGED <<now, key, own, conf, net, undo, session, forcing, tokens, lost>>

(* A section sends a request that sets a shorter lease, such as a partial release. *)
Shorten == /\ Inside /\ ~conf.sent /\ Cardinality(net) < 2
           /\ net' = net \cup {[k |-> "shorten", o |-> sec.o, l |-> 1, na |-> now + 1]}
           /\ sec' = [sec EXCEPT !.dl = IF @ < now + 1 THEN @ ELSE now + 1] /\ conf' = [conf EXCEPT !.sent = TRUE]
           /\ UNCHANGED <<now, key, own, undo, session, forcing, count, kept, tokens, lost, bad>>
Deliver(m) == /\ m \in net /\ net' = net \ {m}
              /\ key' = CASE m.k = "shorten" /\ key.f = m.o -> [key EXCEPT !.x = now + m.l]
                          [] m.k = "acquire" /\ key.f \in {0, m.o} -> [f |-> m.o, x |-> now + m.l]
                          [] OTHER -> key
              /\ UNCHANGED <<now, own, sec, conf, undo, session, forcing, count, kept, tokens, lost, bad>>

Freed(o) == IF key.f = o THEN Free ELSE key
(* The tenure knows of attempts of its own acquire, and of its own requests. *)
Release == /\ Inside /\ key' = Freed(sec.o) /\ sec' = NoSec /\ conf' = NoConf
           /\ undo' = IF sec.stray >= now \/ conf.sent THEN undo \cup {sec.o} ELSE undo
           /\ UNCHANGED <<now, own, net, session, forcing, count, kept, tokens, lost, bad>>
Lose == /\ sec # NoSec /\ now >= sec.dl /\ undo' = undo \cup {sec.o} /\ sec' = NoSec /\ conf' = NoConf
        /\ UNCHANGED <<now, key, own, net, session, forcing, count, kept, tokens, lost, bad>>
Undo(o) == /\ o \in undo /\ (\A m \in net : m.o # o) /\ undo' = undo \ {o} /\ key' = Freed(o)
           /\ UNCHANGED <<now, own, sec, conf, net, session, forcing, count, kept, tokens, lost, bad>>

(* handOff.keep: nobody waits in this process, so the lock stays with the owner. *)
KeepIt == /\ Keep > 0 /\ Inside /\ ~conf.sent /\ sec.stray < now /\ now < conf.c + Local /\ ~Fenced
          /\ kept' = now + Keep /\ sec' = NoSec
          /\ UNCHANGED <<now, key, own, conf, net, undo, session, forcing, count, tokens, lost, bad>>
Drop == /\ kept > 0 /\ key' = Freed(conf.o) /\ conf' = NoConf /\ kept' = 0
        /\ UNCHANGED <<now, own, sec, net, undo, session, forcing, count, tokens, lost, bad>>

(* After such a loss, Redis gives the lock to another owner of this client: a try beside the line. Its section may end *)
(* at any time, as an owner in undo. The owner before has no streak any more, and no longer keeps the lock.           *)
OtherGranted(l) ==
  /\ own < MaxOwn /\ key.f = 0 /\ lost > 0 /\ conf # NoConf /\ (sec # NoSec \/ kept > 0)
  /\ own' = own + 1 /\ key' = [f |-> own', x |-> now + l] /\ undo' = undo \cup {own'}
  /\ IF kept > 0 /\ ~On("afterOther") THEN kept' = 0 /\ conf' = NoConf
     ELSE conf' = [conf EXCEPT !.over = TRUE] /\ UNCHANGED kept
  /\ UNCHANGED <<now, sec, net, session, forcing, count, tokens, lost, bad>>

Tick == /\ now < MaxTime /\ now' = now + 1
        /\ kept = 0 \/ now < kept \/ On("keepsOn")           \* the timer of a kept lock is not late
        /\ key' = IF key.f # 0 /\ key.x <= now + 1 THEN Free ELSE key
        /\ net' = {m \in net : m.na >= now + 1}
        /\ UNCHANGED <<own, sec, conf, undo, session, forcing, count, kept, tokens, lost, bad>>
StrangerTakes == /\ key.f = 0 /\ key' = [f |-> Stranger, x |-> 99]
                 /\ UNCHANGED <<now, own, sec, conf, net, undo, session, forcing, count, kept, tokens, lost, bad>>
StrangerGives == /\ key.f = Stranger /\ key' = Free
                 /\ UNCHANGED <<now, own, sec, conf, net, undo, session, forcing, count, kept, tokens, lost, bad>>
(* DEL, a forced unlock or a restart elsewhere: this process is not told. A failover also cuts the connection. *)
LostElsewhere == /\ lost < MaxLost /\ key.f > 0 /\ key' = Free /\ lost' = lost + 1 /\ session' \in {session, session + 1}
                 /\ UNCHANGED <<now, own, sec, conf, net, undo, forcing, count, kept, tokens, bad>>
ForceSend == /\ forcing = "no" /\ lost < MaxLost /\ forcing' = "sent"
             /\ UNCHANGED <<now, key, own, sec, conf, net, undo, session, count, kept, tokens, lost, bad>>
ForceRun == /\ forcing = "sent" /\ forcing' = "run" /\ lost' = lost + 1 /\ key' = IF key.f > 0 THEN Free ELSE key
            /\ UNCHANGED <<now, own, sec, conf, net, undo, session, count, kept, tokens, bad>>
ForceAnswered == /\ forcing = "run" /\ forcing' = "no" /\ sec' = NoSec /\ conf' = NoConf /\ kept' = 0
                 /\ undo' = IF conf = NoConf THEN undo ELSE undo \cup {conf.o}
                 /\ UNCHANGED <<now, key, own, net, session, count, tokens, lost, bad>>

Next == \/ \E l \in Leases : Acquire(l) \/ HandOver(l) \/ FollowSection(l) \/ FollowKept(l) \/ OtherGranted(l)
        \/ \E m \in net : Deliver(m)
        \/ \E o \in undo : Undo(o)
        \/ Shorten \/ Release \/ Lose \/ KeepIt \/ Drop \/ Tick \/ StrangerTakes \/ StrangerGives
        \/ LostElsewhere \/ ForceSend \/ ForceRun \/ ForceAnswered
Spec == Init /\ [][Next]_vars

(* -------------------------------- invariants ------------------------------- *)
(* while Redis keeps what it confirmed, a section has the key for all of its lease *)
KeyCovers == (lost = 0 /\ Inside) => key.f = sec.o /\ key.x >= sec.dl
(* rule 6: whatever Redis lost, no section runs past what Redis confirmed *)
RunsNoLonger == Inside => conf.o = sec.o /\ sec.dl <= conf.x
(* no section begins against a rule *)
BeginsByRule == bad = {}
(* a field that no section has is about to be removed *)
OrphanKnown == key.f > 0 => sec.o = key.f \/ (kept > 0 /\ conf.o = key.f) \/ key.f \in undo
(* a kept lock that nobody uses is released in time *)
KeptInTime == kept > 0 => now <= kept
=============================================================================
