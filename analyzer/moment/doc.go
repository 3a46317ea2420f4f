// Package moment knows the moments of a run: how people name them (At), which part of the run lies between two, and
// what was held at one (State). It may look at what the accounts and the devices hold, and never follows events itself:
// whoever replays them says which one it is, and copies the totals.
package moment
