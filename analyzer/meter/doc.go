// Package meter has what figures are kept in while a trace is replayed: totals with their peaks, shares of them,
// heights over time, lifetimes, and dense numbers for identifiers.
package meter
