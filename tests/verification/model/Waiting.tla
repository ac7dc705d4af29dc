------------------------------- MODULE Waiting -------------------------------
(* Waiting and waking: one lock, a lock entry per client, FIFO of local waiters *)
(* of which only the head contends. There is no ttl timer in this model: every  *)
(* wake-up must come from a message, a confirmed subscription or what has gone  *)
(* back after its not-after. Leases do not end here. An outsider ("ext") holds  *)
(* the lock at the start and may take it again. Pub/sub is a FIFO per           *)
(* connection, lost whole when the connection is cut. src/waiting/wait-line.ts, *)
(* retry-schedule.ts (the wake-up, the ttl), wake-ups.ts;                       *)
(* src/redis/connections/subscriber.ts.                                         *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Clients, Waiters, Home,     \* Home: waiter -> client
          MaxCut, MaxLost, MaxErr, MaxExt, Bug

VARIABLES holder, srv,                \* server: who holds; which client is subscribed
          up, toS, toC,               \* subscriber connection: up, commands, items (conf, unconf, msg)
          q, mark, known,             \* entry: FIFO, wake-up mark, ttl known
          parked, sub, pend, wanted,  \* head parked; subscription state; unanswered SUBSCRIBEs; wanted
          by, again,                  \* who asked for the subscription; a waiter's own wish to try again
          tries,                      \* tries under way
          state, cuts, lost, errs, exts

vars == <<holder, srv, up, toS, toC, q, mark, known, parked, sub, pend, wanted, by, again,
          tries, state, cuts, lost, errs, exts>>
On(b) == b \in Bug
Ext == "ext"
Free == "free"
None == "none"

Init == /\ holder = Ext /\ srv = [c \in Clients |-> FALSE]
        /\ up = [c \in Clients |-> TRUE] /\ toS = [c \in Clients |-> <<>>] /\ toC = [c \in Clients |-> <<>>]
        /\ q = [c \in Clients |-> <<>>] /\ mark = [c \in Clients |-> FALSE]
        /\ known = [c \in Clients |-> FALSE]
        /\ parked = [c \in Clients |-> FALSE] /\ sub = [c \in Clients |-> "none"]
        /\ pend = [c \in Clients |-> 0] /\ wanted = [c \in Clients |-> FALSE]
        /\ by = [c \in Clients |-> None] /\ again = {} /\ tries = {}
        /\ state = [w \in Waiters |-> "new"] /\ cuts = 0 /\ lost = 0 /\ errs = 0 /\ exts = 0

Conn  == <<srv, up, toS, toC, sub, pend, wanted, by>>
Entry == <<q, mark, known, parked, again>>
Luck  == <<cuts, lost, errs, exts>>
InQ(w) == \E i \in 1..Len(q[Home[w]]) : q[Home[w]][i] = w
Without(s, w) == SelectSeq(s, LAMBDA x : x # w)
Flying(w) == \E t \in tries : t.w = w /\ t.r # "lost"    \* an unanswered try may be repeated at once
Published == [c \in Clients |-> IF srv[c] /\ up[c] THEN Append(toC[c], "msg") ELSE toC[c]]

(* -------------------------------- waiters --------------------------------- *)
(* src/waiting/wait-line.ts: acquire *)
Arrive(w) == LET c == Home[w] IN
  /\ state[w] = "new" /\ state' = [state EXCEPT ![w] = "wait"] /\ q' = [q EXCEPT ![c] = Append(@, w)]
  /\ UNCHANGED <<holder, mark, known, parked, again, tries, Conn, Luck>>

(* #leave: time-out or abort, at any step; its try, if one is under way, stays under way *)
Leave(w) == LET c == Home[w] IN
  /\ state[w] = "wait" /\ state' = [state EXCEPT ![w] = "gone"]
  /\ q' = [q EXCEPT ![c] = Without(@, w)] /\ again' = again \ {w}
  /\ parked' = [parked EXCEPT ![c] = IF Head(q[c]) = w THEN FALSE ELSE @]
  /\ known' = [known EXCEPT ![c] = IF Len(q[c]) = 1 THEN FALSE ELSE @]     \* the last one forgets the ttl
  /\ UNCHANGED <<holder, mark, tries, Conn, Luck>>

Release(w) == /\ state[w] = "in" /\ state' = [state EXCEPT ![w] = "done"]
              /\ holder' = Free /\ toC' = Published
              /\ UNCHANGED <<srv, up, toS, sub, pend, wanted, by, tries, Entry, Luck>>

(* --------------------------------- trying --------------------------------- *)
(* #step: when the head tries *)
CanTry(c) == /\ q[c] # <<>> /\ ~Flying(Head(q[c]))
             /\ (mark[c] \/ ~known[c] \/ Head(q[c]) \in again)
(* #try, retry-schedule.ts: trying *)
TrySend(c) == LET w == Head(q[c]) IN
  /\ CanTry(c)
  /\ tries' = {[t EXCEPT !.newest = @ /\ Home[t.w] # c] : t \in tries}
                \cup {[w |-> w, r |-> "sent", newest |-> TRUE]}
  /\ mark' = IF On("clearAtReply") THEN mark ELSE [mark EXCEPT ![c] = FALSE]
  /\ known' = IF On("staleTtl") /\ w \notin again THEN known ELSE [known EXCEPT ![c] = FALSE]
  /\ parked' = [parked EXCEPT ![c] = FALSE] /\ again' = again \ {w}
  /\ UNCHANGED <<holder, q, state, Conn, Luck>>

Set(t, r) == tries' = (tries \ {t}) \cup {[t EXCEPT !.r = r]}
TryExec(t) == /\ t.r = "sent"
              /\ IF holder \in {Free, t.w} THEN holder' = t.w /\ Set(t, "ok") ELSE Set(t, "busy") /\ UNCHANGED holder
              /\ UNCHANGED <<state, Conn, Entry, Luck>>
TryErr(t)  == /\ t.r = "sent" /\ errs < MaxErr /\ errs' = errs + 1 /\ Set(t, "err")   \* not executed
              /\ UNCHANGED <<holder, state, Conn, Entry, cuts, lost, exts>>
TryLost(t) == /\ t.r \in {"sent", "ok", "busy"} /\ lost < MaxLost /\ lost' = lost + 1 /\ Set(t, "lost")
              /\ UNCHANGED <<holder, state, Conn, Entry, cuts, errs, exts>>

(* an unanswered try runs late, before its not-after, also when the outsider's lease just ended *)
LateExec(t) == /\ t.r = "lost" /\ holder \in {Free, Ext} /\ holder' = t.w
               /\ UNCHANGED <<tries, state, Conn, Entry, Luck>>
GiveBack(t) == IF holder = t.w THEN holder' = Free /\ toC' = Published ELSE UNCHANGED <<holder, toC>>
Newest(t) == t.newest \/ On("anyBusy")

(* #tried; grants.ts: tried; retry-schedule.ts: learn *)
TryAnswer(t) == LET c == Home[t.w] IN
  /\ t.r \in {"ok", "busy", "err"} /\ tries' = tries \ {t}
  /\ CASE t.r = "ok" /\ InQ(t.w) ->
            /\ state' = [state EXCEPT ![t.w] = "in"] /\ q' = [q EXCEPT ![c] = Without(@, t.w)]
            /\ known' = [known EXCEPT ![c] = FALSE] /\ UNCHANGED <<holder, toC, again>>
       [] t.r = "ok" /\ ~InQ(t.w) ->                          \* it has left: give it back, publish
            /\ GiveBack(t) /\ UNCHANGED <<state, q, known, again>>
       [] t.r = "busy" ->
            /\ known' = IF Newest(t) THEN [known EXCEPT ![c] = q[c] # <<>>] ELSE known
            /\ UNCHANGED <<state, q, holder, toC, again>>
       [] t.r = "err" -> /\ again' = IF InQ(t.w) THEN again \cup {t.w} ELSE again
                         /\ UNCHANGED <<state, q, holder, toC, known>>
  /\ mark' = IF On("clearAtReply") THEN [mark EXCEPT ![c] = FALSE] ELSE mark
  /\ UNCHANGED <<parked, srv, up, toS, sub, pend, wanted, by, Luck>>

(* releaseInBackground: the not-after of an unanswered try has passed: it cannot run any more, and what it took goes back *)
NaPassed(t) == LET c == Home[t.w] IN
  /\ t.r = "lost" /\ tries' = tries \ {t}
  /\ mark' = IF On("noNaMark") THEN mark ELSE [mark EXCEPT ![c] = TRUE]
  /\ parked' = IF On("noNaMark") THEN parked ELSE [parked EXCEPT ![c] = FALSE]
  /\ IF InQ(t.w) THEN UNCHANGED <<holder, toC>> ELSE GiveBack(t)         \* compensation
  /\ UNCHANGED <<state, q, known, again, srv, up, toS, sub, pend, wanted, by, Luck>>

(* #step: when there is nothing to do but wait *)
Park(c) == /\ q[c] # <<>> /\ ~parked[c] /\ ~Flying(Head(q[c])) /\ sub[c] = "conf"
           /\ known[c] /\ ~mark[c] /\ Head(q[c]) \notin again
           /\ parked' = [parked EXCEPT ![c] = TRUE]
           /\ UNCHANGED <<holder, q, mark, known, again, tries, state, Conn, Luck>>

(* ---------------------------- the subscription ---------------------------- *)
(* src/waiting/wake-ups.ts: begin; src/redis/connections/subscriber.ts: want *)
Subscribe(c) == /\ q[c] # <<>> /\ known[c] /\ up[c] /\ sub[c] = "none"
                /\ sub' = [sub EXCEPT ![c] = "pending"] /\ pend' = [pend EXCEPT ![c] = @ + 1]
                /\ wanted' = [wanted EXCEPT ![c] = TRUE] /\ by' = [by EXCEPT ![c] = Head(q[c])]
                /\ toS' = [toS EXCEPT ![c] = Append(@, "sub")]
                /\ UNCHANGED <<holder, srv, up, toC, tries, state, Entry, Luck>>
ServerSub(c) == /\ toS[c] # <<>> /\ toS' = [toS EXCEPT ![c] = Tail(@)]
                /\ srv' = [srv EXCEPT ![c] = Head(toS[c]) = "sub"]
                /\ toC' = [toC EXCEPT ![c] = Append(@, IF Head(toS[c]) = "sub" THEN "conf" ELSE "unconf")]
                /\ UNCHANGED <<holder, up, sub, pend, wanted, by, tries, state, Entry, Luck>>
Wake(c, yes) == IF yes THEN /\ mark' = [mark EXCEPT ![c] = TRUE] /\ parked' = [parked EXCEPT ![c] = FALSE]
                ELSE UNCHANGED <<mark, parked>>
(* subscriber.ts: #subscribe's answer; wake-ups.ts: message, confirmed *)
Item(c) == LET i == Head(toC[c]) IN
  /\ toC[c] # <<>> /\ toC' = [toC EXCEPT ![c] = Tail(@)]
  /\ CASE i = "msg" -> /\ Wake(c, wanted[c] /\ (parked[c] \/ ~On("wakeWaiter")))
                       /\ UNCHANGED <<sub, pend>>
       [] i = "conf" ->
            /\ pend' = [pend EXCEPT ![c] = @ - 1]
            /\ LET counts == wanted[c] /\ sub[c] = "pending" /\ (pend[c] = 1 \/ On("anyConf")) IN
               /\ sub' = [sub EXCEPT ![c] = IF counts THEN "conf" ELSE @]
               /\ Wake(c, /\ counts
                          /\ (by[c] = None => ~On("resubNoMark"))
                          /\ (by[c] # None => (~On("firstNoMark") \/ (q[c] # <<>> /\ Head(q[c]) = by[c]))))
       [] i = "unconf" -> UNCHANGED <<mark, parked, sub, pend>>
  /\ UNCHANGED <<holder, srv, up, toS, wanted, by, q, known, again, tries, state, Luck>>
(* subscriber.ts: #becomeAway *)
Cut(c) == /\ cuts < MaxCut /\ up[c] /\ cuts' = cuts + 1 /\ up' = [up EXCEPT ![c] = FALSE]
          /\ srv' = [srv EXCEPT ![c] = FALSE] /\ toS' = [toS EXCEPT ![c] = <<>>] /\ toC' = [toC EXCEPT ![c] = <<>>]
          /\ sub' = [sub EXCEPT ![c] = "none"] /\ pend' = [pend EXCEPT ![c] = 0]
          /\ UNCHANGED <<holder, wanted, by, tries, state, Entry, lost, errs, exts>>
(* subscriber.ts: #becomeReady *)
Reconnect(c) == /\ ~up[c] /\ up' = [up EXCEPT ![c] = TRUE]
                /\ IF wanted[c]
                   THEN /\ toS' = [toS EXCEPT ![c] = <<"sub">>] /\ pend' = [pend EXCEPT ![c] = 1]
                        /\ sub' = [sub EXCEPT ![c] = IF On("readyCounts") THEN "conf" ELSE "pending"]
                        /\ Wake(c, On("readyCounts"))
                   ELSE UNCHANGED <<toS, pend, sub, mark, parked>>
                /\ by' = [by EXCEPT ![c] = None]
                /\ UNCHANGED <<holder, srv, toC, wanted, q, known, again, tries, state, Luck>>
(* wait-lines.ts: linger; wait-line.ts: forgetChannel *)
LingerEnds(c) == /\ q[c] = <<>> /\ wanted[c] /\ wanted' = [wanted EXCEPT ![c] = FALSE]
                 /\ toS' = IF up[c] THEN [toS EXCEPT ![c] = Append(@, "unsub")] ELSE toS
                 /\ sub' = [sub EXCEPT ![c] = "none"]
                 /\ mark' = [mark EXCEPT ![c] = FALSE] /\ known' = [known EXCEPT ![c] = FALSE]
                 /\ UNCHANGED <<holder, srv, up, toC, pend, by, q, parked, again, tries, state, Luck>>

ExtReleases == /\ holder = Ext /\ holder' = Free /\ toC' = Published
               /\ UNCHANGED <<srv, up, toS, sub, pend, wanted, by, tries, state, Entry, Luck>>
ExtTakes == /\ holder = Free /\ exts < MaxExt /\ exts' = exts + 1 /\ holder' = Ext
            /\ UNCHANGED <<tries, state, Conn, Entry, cuts, lost, errs>>

Work == \/ \E c \in Clients : TrySend(c) \/ Park(c) \/ Subscribe(c) \/ ServerSub(c) \/ Item(c) \/ Reconnect(c)
        \/ \E t \in tries : TryExec(t) \/ TryAnswer(t) \/ NaPassed(t)
        \/ \E w \in Waiters : Release(w)
        \/ ExtReleases
Next == \/ Work
        \/ \E w \in Waiters : Arrive(w) \/ Leave(w)
        \/ \E c \in Clients : Cut(c) \/ LingerEnds(c)
        \/ \E t \in tries : TryErr(t) \/ TryLost(t) \/ LateExec(t)
        \/ ExtTakes
Spec == Init /\ [][Next]_vars /\ WF_vars(Work)

(* ------------------------------- properties ------------------------------- *)
Waits(c) == q[c] # <<>>
ParkedClear == \A c \in Clients : parked[c] => (~mark[c] /\ Waits(c))
(* nothing is left to happen by itself, the lock is free, and somebody waits: a lost wake-up *)
Quiet == /\ tries = {} /\ \A c \in Clients : /\ up[c] /\ toS[c] = <<>> /\ toC[c] = <<>> /\ ~CanTry(c)
                                             /\ ~(Waits(c) /\ known[c] /\ sub[c] = "none")
NoLostWakeUp == ~(Quiet /\ holder = Free /\ \E c \in Clients : Waits(c))
(* nobody sleeps on a lock that is his own *)
NoSleepingOwner == ~(Quiet /\ \E w \in Waiters : holder = w /\ InQ(w))
Served == []<>(holder # Free \/ \A c \in Clients : q[c] = <<>>)
=============================================================================
