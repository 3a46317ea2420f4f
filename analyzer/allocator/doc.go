// Package allocator replays events of a framework's allocator other than blocks: blocks that wait for other streams,
// the release of unused memory, its settings, and queries of the free memory.
package allocator
