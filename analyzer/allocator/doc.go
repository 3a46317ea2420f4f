// Package allocator follows what a framework's allocator is told beside its blocks: which of them wait for other
// streams, when it gives back what it does not use, its settings, and who asks how much is free.
package allocator
