package diff

import (
	"fmt"

	"memtrace/analyzer/report"
)

// RoundingNotes report blocks that differ in size although their contents do not: the allocator rounds, and returns
// parts of segments whose remainder was too small to be split off.
func RoundingNotes(base, changed *report.Training) (notes []string) {
	if base == nil || changed == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		of   func(p *report.Parameter) (bytes, blocks uint64)
	}{
		{"Parameters", func(p *report.Parameter) (uint64, uint64) { return p.Bytes, p.BlockBytes }},
		{"Gradients", func(p *report.Parameter) (uint64, uint64) { return p.Gradient, p.GradBlock }},
		{"Optimizer state", (*report.Parameter).StateBytes},
	} {
		var bytes, blocks [2]uint64
		for side, t := range []*report.Training{base, changed} {
			for i := range t.Parameters {
				b, k := part.of(&t.Parameters[i])
				bytes[side], blocks[side] = bytes[side]+b, blocks[side]+k
			}
		}
		if delta := int64(blocks[1] - blocks[0]); bytes[0] == bytes[1] && delta != 0 {
			size, word := report.SizeText(magnitude(delta)), "larger"
			if delta < 0 {
				word = "smaller"
			}
			notes = append(notes,
				fmt.Sprintf(
					"%s: the tensors have the same sizes in both runs, %s in total; their blocks are %s %s in the new run, by rounding and by remainders that the allocator did not split off.",
					part.name, report.SizeText(bytes[0]), size, word))
		}
	}
	return notes
}
