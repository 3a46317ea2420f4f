// Package device follows what the devices hold: driver memory by library, the pages and pools that it takes, the
// frameworks' own counters, samples of what the devices say, and of a framework's allocator what is not a block: blocks
// that wait for other streams, the release of unused memory, settings, and queries of the free memory.
package device
