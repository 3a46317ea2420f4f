// Package moment has the moments of a run: how they are named (At), which part of the run is between two, and what was
// held at one (State). It may read the accounts and the devices, but never replays events itself: its caller identifies
// the current one, and copies the totals.
package moment
