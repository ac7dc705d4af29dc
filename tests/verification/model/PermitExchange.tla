--------------------------- MODULE PermitExchange ---------------------------
(* The exchange of permits: a request releases old ids and takes new ones with  *)
(* a lease of their own (lua/permit-expirable-semaphore/hand-off.lua,           *)
(* src/waiting/permit-hand-overs.ts). One request has several exchanges, and    *)
(* each is done as a whole or not at all. Attempts are repeated, and lost, and  *)
(* come late; a reply is lost with the attempt. A stranger takes a free permit. *)
(* Our own tries are the stranger's too: a waiter that got no permit waits on.  *)
(* Bug is the set of mechanisms taken out.                                      *)
EXTENDS Integers, FiniteSets

CONSTANTS N,           \* exchanges of the request: the permits 1..N become N+1..2N
          Total,       \* permits of the semaphore
          Short,       \* permits 1..Short have a lease that ends at 2; the others none
          Lease,       \* lease of the new permits
          MaxTime, MaxAtt, MaxLeft,
          Twice,       \* TRUE: each exchange releases the permit 1, because a caller released it several times at once
          Asks,        \* TRUE: the streak is at its limit, the script asks for other subscribers
          Bug

VARIABLES now, free, taken,       \* Redis: number of free permits; id -> time at which its lease ends, 0 = not taken
          sent,                   \* attempts that may still run
          att,                    \* attempts sent
          reply,                  \* permit -> "none", "handed", "released", "gone", of the attempt that was answered
          phase,                  \* "open", "answered", "failed"
          held,                   \* new permits that a waiter has
          left,                   \* waiters that have left before the reply
          undo,                   \* ids that the client releases in the background
          stranger,               \* permits that others hold
          since, dead             \* ghosts: when the new lease began; whether a dead permit was exchanged

vars == <<now, free, taken, sent, att, reply, phase, held, left, undo, stranger, since, dead>>
On(b)  == b \in Bug
Old    == 1..N
New(i) == N + i
News   == {New(i) : i \in Old}
Ids    == 1..(2 * N)
Never  == 99
NoReply == [i \in Old |-> "none"]

(* the permit that an exchange releases *)
Gives(i) == IF Twice THEN 1 ELSE i
Given    == {Gives(i) : i \in Old}

Init == /\ now = 1 /\ free = Total - Cardinality(Given) /\ stranger = 0
        /\ taken = [i \in Ids |-> IF i \notin Given THEN 0 ELSE IF i <= Short THEN 2 ELSE Never]
        /\ sent = 1 /\ att = 1 /\ reply = NoReply /\ phase = "open"
        /\ held = {} /\ left = 0 /\ undo = {} /\ since = 0 /\ dead = FALSE

Live(i) == taken[i] > now

(* ------------------------- hand-off.lua, one attempt ------------------------ *)
Known(i)   == IF On("expired") THEN taken[Gives(i)] > 0 ELSE Live(Gives(i))
Repeats(i) == ~On("noRepeat") /\ Live(New(i))
(* the first of the exchanges that release the same permit *)
First(i)   == On("doubled") \/ \A j \in Old : Gives(j) = Gives(i) => i <= j
Pending    == {i \in Old : Known(i) /\ First(i)}
Answer(i, releases) ==
  IF i \in Pending THEN IF i \in releases THEN "released" ELSE "handed"
  ELSE IF Repeats(i) THEN "handed" ELSE "gone"

(* the first exchange of the request is for the others; the next ones pass *)
Releases(others) ==
  IF ~others \/ Pending = {} THEN {}
  ELSE {CHOOSE i \in Pending : \A j \in Pending : i <= j}

Run(others, lost) ==
  LET releases == Releases(others)
      hands    == Pending \ releases
      freed    == Cardinality(IF On("countsAll") THEN Pending ELSE releases)
  IN /\ sent > 0 /\ sent' = sent - 1
     /\ free' = free + freed
     /\ taken' = [i \in Ids |->
          IF i \in Old THEN IF i \in {Gives(j) : j \in Pending} /\ ~On("keepsOld") THEN 0 ELSE taken[i]
          ELSE IF (i - N) \in hands THEN now + Lease ELSE taken[i]]
     /\ since' = IF hands # {} THEN now ELSE since
     /\ dead' = (dead \/ \E i \in Pending : ~Live(Gives(i)))
     /\ IF lost \/ phase # "open" THEN UNCHANGED <<reply, phase>>
        ELSE reply' = [i \in Old |-> Answer(i, releases)] /\ phase' = "answered"
     /\ UNCHANGED <<now, att, held, left, undo, stranger>>

Lost == sent > 0 /\ sent' = sent - 1
        /\ UNCHANGED <<now, free, taken, att, reply, phase, held, left, undo, stranger, since, dead>>

(* ------------------------------- the client -------------------------------- *)
Resend == /\ phase = "open" /\ att < MaxAtt /\ att' = att + 1 /\ sent' = sent + 1
          /\ UNCHANGED <<now, free, taken, reply, phase, held, left, undo, stranger, since, dead>>
Leave == /\ phase = "open" /\ left < MaxLeft /\ left' = left + 1
         /\ UNCHANGED <<now, free, taken, sent, att, reply, phase, held, undo, stranger, since, dead>>

(* Waiters have no name in the request: those that have left leave the last permits over. *)
Handed == {i \in Old : reply[i] = "handed"}
Rank(i) == Cardinality({j \in Handed : j < i})
Settle == /\ phase = "answered" /\ phase' = "settled"
          /\ LET goes == {i \in Handed : Rank(i) < N - left /\ now < since + Lease}
                 over == Handed \ goes
             IN /\ held' = {New(i) : i \in goes}
                /\ undo' = undo \cup (IF On("noTakeBack") THEN {} ELSE {New(i) : i \in over})
          /\ UNCHANGED <<now, free, taken, sent, att, reply, left, stranger, since, dead>>

(* No attempt was answered: the caller gets the error, both ids go back. *)
Fail == /\ phase = "open" /\ phase' = "failed"
        /\ undo' = undo \cup (IF On("undoOnlyOld") THEN Old ELSE Old \cup News)
        /\ UNCHANGED <<now, free, taken, sent, att, reply, held, left, stranger, since, dead>>

(* Compensations repeat until the release has run after the last attempt: a late attempt finds no old id any more. *)
Undo == /\ undo # {}
        /\ LET back == {i \in undo : Live(i)}
           IN /\ taken' = [i \in Ids |-> IF i \in back THEN 0 ELSE taken[i]]
              /\ free' = free + Cardinality(back)
        /\ undo' = {}
        /\ UNCHANGED <<now, sent, att, reply, phase, held, left, stranger, since, dead>>

Release(i) == /\ i \in held /\ held' = held \ {i}
              /\ free' = IF Live(i) THEN free + 1 ELSE free
              /\ taken' = [taken EXCEPT ![i] = IF Live(i) THEN 0 ELSE @]
              /\ UNCHANGED <<now, sent, att, reply, phase, left, undo, stranger, since, dead>>

(* ------------------------------- the others -------------------------------- *)
StrangerTakes == /\ free > 0 /\ free' = free - 1 /\ stranger' = stranger + 1
                 /\ UNCHANGED <<now, taken, sent, att, reply, phase, held, left, undo, since, dead>>
(* acquire.lua and the sweep of the other scripts: expired permits become free *)
Sweep == LET over == {i \in Ids : taken[i] > 0 /\ ~Live(i)}
         IN /\ over # {} /\ free' = free + Cardinality(over)
            /\ taken' = [i \in Ids |-> IF i \in over THEN 0 ELSE taken[i]]
            /\ UNCHANGED <<now, sent, att, reply, phase, held, left, undo, stranger, since, dead>>
Tick == /\ now < MaxTime /\ now' = now + 1
        /\ UNCHANGED <<free, taken, sent, att, reply, phase, held, left, undo, stranger, since, dead>>

Next == \/ \E others \in (IF Asks THEN BOOLEAN ELSE {FALSE}), lost \in BOOLEAN : Run(others, lost)
        \/ Lost \/ Resend \/ Leave \/ Settle \/ Fail \/ Undo \/ StrangerTakes \/ Sweep \/ Tick
        \/ \E i \in News : Release(i)
Spec == Init /\ [][Next]_vars

(* -------------------------------- invariants ------------------------------- *)
(* no permit is lost, and none is doubled: free and taken permits, and those of others, are as many as ever *)
Sum == free + Cardinality({i \in Ids : taken[i] > 0}) + stranger = Total
(* a waiter that has a permit has it in Redis, until the lease that it counts has ended *)
Covered == \A i \in held : now < since + Lease => Live(i)
(* a permit whose lease has ended belongs to the next who asks for it *)
NoneDead == ~dead
(* at rest every permit of ours that is still taken has a holder, unless its lease has ended *)
Rest == phase \in {"settled", "failed"} /\ undo = {} /\ sent = 0
Owned == Rest => \A i \in Ids : Live(i) => i \in held
=============================================================================
