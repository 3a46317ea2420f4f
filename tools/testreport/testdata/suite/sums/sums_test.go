// Package sums passes.
package sums

import (
	"testing"
	"time"
)

// TestSum adds.
func TestSum(t *testing.T) {
	t.Run("small", func(t *testing.T) {})
}

// TestSkipped has nothing to run on.
func TestSkipped(t *testing.T) { t.Skip("no GPU") }

// TestLong takes its time.
func TestLong(t *testing.T) { time.Sleep(20 * time.Millisecond) }
