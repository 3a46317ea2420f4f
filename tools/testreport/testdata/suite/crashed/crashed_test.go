// Package crashed panics while another test waits.
package crashed

import "testing"

// TestOther has not failed, it did not come to its end.
func TestOther(t *testing.T) {
	t.Parallel()
	select {}
}

// TestIndex reads within the array.
func TestIndex(t *testing.T) {
	t.Parallel()
	t.Run("last", func(t *testing.T) { at([]int{1, 2}, 2) })
}

func at(values []int, i int) int { return values[i] }
