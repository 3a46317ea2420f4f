// Package raced has two writers of one word.
package raced

import "testing"

// TestCount counts in two goroutines.
func TestCount(t *testing.T) {
	count, done := 0, make(chan bool)
	go func() { count++; done <- true }()
	count++
	<-done
}
