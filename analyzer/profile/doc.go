// Package profile keeps bytes by origin: live, at the peak, and how many allocations that took. Cells of one origin are
// what every grouping, filter and name is asked about.
package profile
