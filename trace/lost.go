package trace

// What a lost event says, and where it stands:
//
//   - Count records were dropped since the lost event before.
//   - Size-1 of them ended memory: frees, unmappings, destructions. The others may have begun some. Size 0: their kinds are not known.
//   - It stands before the first event that one of them may have come before, so that everything in front of it can be trusted.
//   - Handle is an order number by which all of them had been lost: what has a higher one came after. Handle 0: neither this nor the place can be relied on.
//
// Earlier recorders wrote Count alone, and wrote it behind events that it may concern.

// Lost tells of records that were dropped.
type Lost struct {
	Count  uint64
	Enders uint64 // of them, those that ended memory
	Known  bool   // Enders is known
	Until  uint64 // order number by which all were lost; 0: unknown, and so is since when
}

// Event returns the event that says so, without thread and time; seq is the number of an event before it.
func (l Lost) Event(seq uint64) Event {
	e := Event{Kind: EventLost, Seq: seq, Count: l.Count, Handle: l.Until}
	if l.Known {
		e.Size = 1 + min(l.Enders, l.Count)
	}
	return e
}

// Lost returns what a lost event says.
func (e *Event) Lost() Lost {
	l := Lost{Count: e.Count, Until: e.Handle}
	if e.Size > 0 && e.Size-1 <= e.Count {
		l.Enders, l.Known = e.Size-1, true
	}
	return l
}
