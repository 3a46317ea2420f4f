// Package profile keeps bytes by origin: live, at the peak, and the number of allocations. Every grouping, filter and
// name is computed from cells, one per origin.
package profile
