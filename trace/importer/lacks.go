package importer

// lacks says in sentences what a snapshot does not hold.
func (t *torchImport) lacks(root *dict, history []entry) []string {
	lacks := []string{"The snapshot was exported from a trace of memtrace: it holds device memory, its blocks and Python frames, no other memory, no tags, no threads, no native frames."}
	if root.get(writerKey) == nil {
		lacks[0] = "The snapshot holds what PyTorch's caching allocator did: no memory of CUDA contexts, libraries or other allocators, no threads, no native frames."
	}
	if len(history) == 0 {
		lacks = append(lacks, "It holds no history: figures are those of its one moment (call torch.cuda.memory._record_memory_history() first).")
	}
	if host, _ := root.get("host_traces").(*list); host != nil && len(host.items) > 0 {
		lacks = append(lacks, "Its pinned host memory was left out.")
	}
	return lacks
}
