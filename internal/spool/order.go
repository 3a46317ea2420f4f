package spool

// keyOrder sorts keys by number. Every ring's come nearly in order, so that there are few ascending runs, which are
// merged; a general sort compares three times as often.
type keyOrder struct {
	spare []key
	ends  []int // of the runs
}

// sort returns the keys in order. They may be in its own buffer, which the next call overwrites; the given one is
// overwritten, too.
func (o *keyOrder) sort(keys []key) []key {
	o.ends = o.ends[:0]
	for i := 1; i < len(keys); i++ {
		if keys[i].seq < keys[i-1].seq {
			o.ends = append(o.ends, i)
		}
	}
	o.ends = append(o.ends, len(keys))
	for len(o.ends) > 1 {
		merged := o.spare[:0]
		begin, left := 0, o.ends[:0]
		for i := 0; i < len(o.ends); i += 2 {
			middle, end := o.ends[i], o.ends[min(i+1, len(o.ends)-1)]
			merged = mergeKeys(merged, keys[begin:middle], keys[middle:end])
			begin, left = end, append(left, end)
		}
		o.spare, keys, o.ends = keys, merged, left
	}
	return keys
}

func mergeKeys(to, a, b []key) []key {
	for len(a) > 0 && len(b) > 0 {
		if b[0].seq < a[0].seq {
			to, b = append(to, b[0]), b[1:]
		} else {
			to, a = append(to, a[0]), a[1:]
		}
	}
	return append(append(to, a...), b...)
}
