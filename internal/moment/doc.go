// Package moment has the moments of a run: how they are named (At), which part of the run is between two, what was held
// at one (State), and what was held over time (Timeline). It may read the accounts and the devices, but never replays
// events itself: its caller identifies the current one, and copies the totals.
package moment
