// Package slow does not come to its end.
package slow

import "testing"

// TestQuick is over at once.
func TestQuick(t *testing.T) {}

// TestWaits waits for what never comes.
func TestWaits(t *testing.T) {
	wait(make(chan int))
}

func wait(c chan int) { <-c }
