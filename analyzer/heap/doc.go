// Package heap knows which blocks of memory are live, from events that may come late, twice or not at all, and tells an
// Observer as blocks come and go.
package heap
