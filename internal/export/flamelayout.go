package export

import (
	"memtrace/analyzer"
)

// FlameLayout is a flame graph before it is drawn, for pictures that no browser shows: the boxes of the SVG.
type FlameLayout struct {
	Headline, Subtitle string
	Depth              int // rows of boxes
	Sum                uint64
	Boxes              []FlameBox // callers before what they called
}

// FlameBox is a frame below its callers.
type FlameBox struct {
	Depth       int    // row, from 0: everything
	From, Value uint64 // value of the boxes on its left, and its own
	Names       []string
	Size        string
	Class       string // owner of its code, "" for everything
}

// FlameClass is the owner of a box's code.
type FlameClass struct{ Class, Label string }

// FlameClasses are in the order of the legend.
func FlameClasses() (list []FlameClass) {
	for _, c := range boxClasses {
		list = append(list, FlameClass{c.class, c.label})
	}
	return list
}

// LayOut makes the boxes of a set's stacks.
func LayOut(set *analyzer.StackSet, o Options) FlameLayout {
	frames, root := flameTree(set, o)
	p := &flamePicture{o: &o, sum: root.value}
	l := FlameLayout{Sum: root.value, Depth: root.depth()}
	l.Headline, l.Subtitle = p.titles(set)
	l.add(root, frames, o.Value, 0, 0)
	return l
}

func (l *FlameLayout) add(b *box, frames []frame, value Value, from uint64, depth int) {
	one := FlameBox{Depth: depth, From: from, Value: b.value, Names: []string{"all"}, Size: value.Text(b.value)}
	if b.frame != flameRoot {
		one.Names, one.Class = frames[b.frame].labels(), boxClasses[frames[b.frame].origin].class
	}
	l.Boxes = append(l.Boxes, one)
	for _, c := range b.children {
		l.add(c, frames, value, from, depth+1)
		from += c.value
	}
}

// flameTree merges the stacks of a set.
func flameTree(set *analyzer.StackSet, o Options) ([]frame, *box) {
	s := newSampler(set.Rows, shaper(set, o.NoLines))
	list, sum := s.samples(o.Value)
	root := newFlameTree(list, sum, leastValue(sum))
	if !o.Full {
		root.shorten(func(id int32) bool { return s.frames[id].origin != ofUser })
	}
	return s.frames, root
}
