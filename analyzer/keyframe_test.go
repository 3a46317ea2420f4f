package analyzer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rewrite"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// framed adds keyframes to a trace, at most so many events apart. The error says why it can have none.
func framed(t *testing.T, file []byte, distance KeyframeDistance) ([]byte, int, error) {
	t.Helper()
	return framedAs(t, file, distance, func(*trace.Keyframe) {})
}

// framedAs lets edit change keyframes before they are written.
func framedAs(t *testing.T, file []byte, distance KeyframeDistance, edit func(*trace.Keyframe)) ([]byte, int, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.bin")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	count := 0
	err = trace.AppendKeyframes(to, func(
		put func(*trace.Keyframe) (int64, error)) (c *trace.KeyframesClosing, err error) {
		c, count, err = MakeKeyframes(openStory(t, file), trainingOptions(t, file), distance,
			func(k *trace.Keyframe) (int64, error) {
				edit(k)
				return put(k)
			})
		return c, err
	})
	if err != nil {
		return nil, 0, err
	}
	added, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return added, count, nil
}

func trainingOptions(t *testing.T, file []byte) Options {
	return Options{Question: Question{Groupings: []string{"api"}}, Training: true, Ahead: openStory(t, file),
		RuleSets: []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}}
}

// eachBlock makes a keyframe before every block of events.
var eachBlock = KeyframeDistance{Events: 1}

// countedSource counts the events that are read.
type countedSource struct {
	*trace.Reader
	events int
}

func (c *countedSource) ReadColumns() (*trace.Batch, error) {
	b, err := c.Reader.ReadColumns()
	if err == nil {
		c.events += b.Len()
	}
	return b, err
}

func (c *countedSource) ReadBatch() ([]trace.Event, error) {
	events, err := c.Reader.ReadBatch()
	c.events += len(events)
	return events, err
}

// bothWays returns what is said of a window by way of keyframes and without, and how many events each way reads.
func bothWays(t *testing.T, file []byte, o Options) (got, want string, read, all int, err error) {
	t.Helper()
	o.Symbols = symbol.Options{NoFiles: true}
	answer := func(keyframes bool) (string, int, error) {
		src, ahead := &countedSource{Reader: openStory(t, file)}, &countedSource{Reader: openStory(t, file)}
		if o.Keyframes = keyframes; o.NeedsAhead() {
			o.Ahead = ahead
		}
		s, err := Summarize(src, o)
		if err != nil {
			return "", 0, err
		}
		return asJSON(t, s), max(src.events, ahead.events), nil
	}
	want, all, wrong := answer(false)
	got, read, err = answer(true)
	if wrong != nil && err == nil {
		t.Fatalf("%s to %s: answered by way of keyframes alone: %v", o.From, o.To, wrong)
	}
	return got, want, read, all, errors.Join(err, wrong)
}

func windowsOf(rng *rand.Rand, events []trace.Event) (list [][2]string) {
	times := func() (a, b int64) {
		a, b = events[rng.IntN(len(events))].Time, events[rng.IntN(len(events))].Time
		return min(a, b), max(a, b)
	}
	for range 3 {
		from, to := times()
		list = append(list, [2]string{fmt.Sprintf("%dns", from), fmt.Sprintf("%dns", to)},
			[2]string{fmt.Sprintf("%dns", from), ""})
	}
	return append(list, [2]string{"mark:loaded", ""}, [2]string{"mark:loaded", "mark:loaded"},
		[2]string{"step:7777", ""}, [2]string{"step:3", "step:7"})
}

// TestWindowFromKeyframes: what is said of a window is the same, byte for byte, whether reading begins at the beginning
// or at the last keyframe before the window.
func TestWindowFromKeyframes(t *testing.T) {
	t.Parallel()
	sets := []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}
	asked := map[string]Options{
		"plain":    {Question: Question{Groupings: profile.GroupingNames(), ByDevice: true}},
		"training": {Question: Question{Sites: true, ByDevice: true}, Training: true, RuleSets: sets},
		"exit":     {Question: Question{At: parseAt(t, "exit"), Groupings: []string{"tag", "module", "name"}}},
	}
	var answered, fewer, refused int
	for seed := range uint64(randomStreams() / 6) {
		rng := rand.New(rand.NewPCG(seed, 77))
		events := storyOf(seed, rng)
		whole := traceOf(t, events, rng)
		if seed%5 == 4 {
			whole, _ = thinned(t, whole, rewrite.CopyOptions{WholeFrom: int64(len(whole)) / 3, Window: 150})
		}
		file, frames, err := framed(t, whole, eachBlock)
		if errors.Is(err, ErrNoKeyframes) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %d keyframes of %d events: %v", seed, frames, len(events), err)
		}
		for _, w := range windowsOf(rng, events) {
			for name, o := range asked {
				o.From, o.To = parseAt(t, w[0]), parseAt(t, w[1])
				got, want, read, all, err := bothWays(t, file, o)
				if err != nil {
					continue
				}
				if answered++; read < all {
					fewer++
				}
				if got != want {
					t.Fatalf("seed %d, %s, %s to %s: %s", seed, name, w[0], w[1], difference(got, want))
				}
			}
		}
	}
	t.Logf("%d answers, %d of them read less; %d traces can have no keyframes", answered, fewer, refused)
	if answered == 0 || fewer < answered/3 || refused > randomStreams()/12 {
		t.Errorf("%d of %d answers read less than all", fewer, answered)
	}
}

// storyOf makes a run of one of the kinds that the other tests have.
func storyOf(seed uint64, rng *rand.Rand) []trace.Event {
	switch seed % 4 {
	case 0, 1:
		return numberedOnce(newMixedRun(seed, 2500))
	case 2:
		shape := streamShape{events: 1500, noHandles: rng.IntN(4) == 0}
		if rng.IntN(2) == 0 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		return withPlaces(randomStream(seed, shape))
	}
	events := randomStream(seed, streamShape{events: 1500, wild: true})
	var kept []trace.Event
	for _, e := range events {
		if e.Kind != trace.EventLost {
			kept = append(kept, e)
		}
	}
	return kept
}

// numberedOnce gives events that share an order number different ones, with the same order to others, and more time.
func numberedOnce(events []trace.Event) []trace.Event {
	used := make(map[uint64]bool)
	for i := range events {
		for events[i].Seq *= 64; used[events[i].Seq]; {
			events[i].Seq--
		}
		used[events[i].Seq] = true
		events[i].Time *= 1000
	}
	return events
}

// TestWindowReadsLittle: of a long trace a window costs at most the two distances of keyframes around it beside itself.
func TestWindowReadsLittle(t *testing.T) {
	events := numberedOnce(newMixedRun(1, 60_000))
	const apart = 2000
	rng := rand.New(rand.NewPCG(1, 1))
	file, frames, err := framed(t, traceOf(t, events, rng), KeyframeDistance{Events: apart})
	if err != nil || frames < 20 {
		t.Fatalf("%d keyframes: %v", frames, err)
	}
	const most = 400 // events of a block: keyframes stand between blocks
	for n := 5000; n < 55_000; n += 5000 {
		o := Options{Question: Question{Groupings: []string{"tag"}}, Keyframes: true,
			From: moment.At{Kind: moment.Time, Time: events[n].Time}, To: moment.At{Kind: moment.Time,
				Time: events[n+1000].Time}}
		_, _, read, all, err := bothWays(t, file, o)
		if err != nil {
			t.Fatal(err)
		}
		if limit := 1000 + 2*(apart+2*most); read > limit || all < len(events) {
			t.Errorf("window at event %d: %d of %d events were read, at most %d are needed", n, read, all, limit)
		}
	}
}

// TestDamagedKeyframes: damage in keyframes costs no more than their use; a replay that begins at one says so.
func TestDamagedKeyframes(t *testing.T) {
	events := numberedOnce(newMixedRun(3, 3000))
	plain := traceOf(t, events, rand.New(rand.NewPCG(3, 1)))
	file, _, err := framed(t, plain, KeyframeDistance{Events: 900})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Question: Question{Groupings: []string{"tag"}}, Keyframes: true,
		From: moment.At{Kind: moment.Time, Time: events[2800].Time}, Symbols: symbol.Options{NoFiles: true}}
	for at := len(plain); at < len(file); at += 1 + (len(file)-len(plain))/150 {
		damaged := bytes.Clone(file)
		damaged[at] ^= 0x10
		if _, err := Summarize(openStory(t, damaged), o); err != nil && !errors.Is(err, ErrKeyframes) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}

// TestHostileKeyframes: whatever numbers stand in keyframes, a replay that begins at one neither panics nor fails in
// another way than by asking to begin at the beginning.
func TestHostileKeyframes(t *testing.T) {
	events := numberedOnce(newMixedRun(6, 1500))
	plain := traceOf(t, events, rand.New(rand.NewPCG(6, 1)))
	stream := traceOf(t, randomStream(6, streamShape{events: 1500}), rand.New(rand.NewPCG(6, 2)))
	sets := []profile.RuleGrouping{{Name: "category", Rules: madeSet(t)}}
	asked, seeds := 0, 120
	if testing.Short() {
		seeds = 30
	}
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 5))
		file, _, err := framedAs(t, [][]byte{plain, stream}[seed%2], KeyframeDistance{Events: 600},
			func(k *trace.Keyframe) { tamper(rng, k) })
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"900ms", "100000000s", "5s", "100s"} {
			o := Options{Training: true, RuleSets: sets, Ahead: openStory(t, file), Keyframes: true,
				From: parseAt(t, from), Symbols: symbol.Options{NoFiles: true}}
			if _, err := Summarize(openStory(t, file), o); err == nil {
				asked++
			} else if !errors.Is(err, ErrKeyframes) {
				t.Fatalf("seed %d, %s: %v", seed, from, err)
			}
		}
	}
	if asked < seeds/3 {
		t.Errorf("%d replays ended", asked)
	}
}

// tamper changes a number or an event of a keyframe.
func tamper(rng *rand.Rand, k *trace.Keyframe) {
	wrong := func(v uint64) uint64 {
		return []uint64{0, v + 1, v - 1, 1 << 20, 1<<32 - 1, 1<<64 - 1, rng.Uint64()}[rng.IntN(7)]
	}
	if len(k.Live) > 0 && rng.IntN(3) == 0 {
		e := &k.Live[rng.IntN(len(k.Live))]
		for _, v := range []*uint64{&e.Addr, &e.Size, &e.Handle, &e.Seq}[rng.IntN(4):][:1] {
			*v = wrong(*v)
		}
		e.Device, e.Thread = int16(wrong(1)), trace.ThreadID(wrong(uint64(e.Thread)))
		return
	}
	chosen := k.State.Names()[rng.IntN(len(k.State.Names()))]
	var edited trace.State
	for _, name := range k.State.Names() {
		from, to := k.State.Table(name), edited.Table(name)
		var values []uint64
		for from.More() {
			values = append(values, from.Next())
		}
		if n := len(values); name == chosen && n > 0 {
			at := rng.IntN(n)
			if values[at] = wrong(values[at]); rng.IntN(4) == 0 {
				values = values[:at]
			}
		}
		to.Put(values...)
	}
	k.State = edited
}
