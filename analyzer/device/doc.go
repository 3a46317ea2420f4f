// Package device follows what the devices hold: driver memory by library, the pages and pools that it takes, the
// frameworks' own counters, and samples of what the devices say.
package device
