package fold

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// heaviestOf calls Heaviest with a map's names and what they hold.
func heaviestOf(held map[string]uint64, whole uint64) (title string, sum uint64, deep bool) {
	names := slices.Sorted(maps.Keys(held))
	var bytes []uint64
	for _, name := range names {
		bytes = append(bytes, held[name])
	}
	return Heaviest(names, bytes, whole)
}

// TestHeaviest: the path ends where no part holds half of its parent or a quarter of the whole; layers of one kind
// count as one, different ones of a list do not; a module without modules below it is not deep.
func TestHeaviest(t *testing.T) {
	layers := map[string]uint64{"model.head": 100}
	for i := range 12 {
		layers[fmt.Sprintf("model.h.%d.attn", i)] = 30
		layers[fmt.Sprintf("model.h.%d.attn.proj", i)] = 10
		layers[fmt.Sprintf("model.h.%d.mlp", i)] = 20
	}
	for _, c := range []struct {
		name  string
		held  map[string]uint64
		whole uint64
		title string
		bytes uint64
		deep  bool
	}{
		{"layers", layers, 0, "model.h.{0..11}.attn", 480, true},
		{"layers of much more", layers, 2400, "model.h.{0..11}", 720, true},
		{"too little of the whole", layers, 4000, "", 0, false},
		{"different parts of a list", map[string]uint64{"net.0": 10, "net.1": 60, "net.2": 20}, 0, "net.1", 60, false},
		{"a root alone", map[string]uint64{"net": 90, "net.a": 5, "net.b": 5}, 0, "", 0, false},
		{"one of two models", map[string]uint64{"old.a": 20, "old.b": 21, "old.c": 20, "new": 40}, 0, "old", 61, true},
		{"a model beside little", map[string]uint64{"net.a": 45, "net.b": 40, "net.c": 55, "loss": 1}, 0, "", 0, false},
		{"two halves", map[string]uint64{"net.b": 50, "net.a": 50}, 0, "net.a", 50, false},
		{"scattered", map[string]uint64{"net.h.1.a": 10, "net.h.10.a": 20, "net.h.2.a": 30}, 0, "net.h.{1..2,10}.a",
			60, false},
		{"none", nil, 7, "", 0, false},
	} {
		whole := c.whole
		if whole == 0 {
			for _, bytes := range c.held {
				whole += bytes
			}
		}
		title, bytes, deep := heaviestOf(c.held, whole)
		if title != c.title || bytes != c.bytes || deep != c.deep {
			t.Errorf("%s: %s with %d, deep %t; want %s, %d, %t", c.name, title, bytes, deep, c.title, c.bytes,
				c.deep)
		}
	}
}

// Paths of a damaged or hostile trace may have as many parts as they like.
func TestHeaviestOfDeepPaths(t *testing.T) {
	path := "a"
	for range 1000 {
		path += ".a"
	}
	if title, bytes, _ := heaviestOf(map[string]uint64{path: 8}, 8); len(title) < maxModuleDepth || bytes != 8 {
		t.Errorf("%s with %d", title, bytes)
	}
}
