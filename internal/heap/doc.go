// Package heap knows which blocks of memory are live, from events that may come late, twice or not at all, and tells an
// Observer as blocks come and go. It has what figures are kept in meanwhile: totals with their peaks, shares of them,
// heights over time, lifetimes, and dense numbers for identifiers.
package heap
