package cause

import "testing"

// Growth that others make up for is none. What is held at a moment also depends on the phase of the iteration: a leak
// was taken for memory that moves, since the first interval was of a forward pass and the last of an optimizer's step.
func TestMovesByTheLeastOfManyPoints(t *testing.T) {
	const iterations = 12
	for name, c := range map[string]struct {
		leaks, others uint64 // by how much more, and by how much less, each iteration holds
		moves         bool
	}{"leak": {leaks: 8}, "leak beside a little less": {leaks: 8, others: 4},
		"moved": {leaks: 8, others: 8, moves: true}, "more is freed": {leaks: 8, others: 9, moves: true}} {
		t.Run(name, func(t *testing.T) {
			g := &growth{from: 0, bytes: iterations * c.leaks}
			for n := range uint64(iterations) {
				for _, phase := range []uint64{500, 900, 400, 200} {
					g.held = append(g.held, 1000+phase+n*c.leaks-n*c.others)
				}
			}
			if got := g.moves(4); got != c.moves {
				t.Errorf("moves: %v", got)
			}
		})
	}
}
