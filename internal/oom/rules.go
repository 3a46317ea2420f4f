package oom

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
)

// adviceRules is everything that memtrace knows to try when memory runs out.
var adviceRules = []adviceRule{
	{name: "larger-than-device", rank: rankFirst, ask: askLargerThanDevice,
		text: "The request itself, {asked}, is larger than {device} with its {most}: freeing cannot help. Look at the size that was computed, or split the work."},
	{name: "own-limit", rank: rankFirst, ask: askOwnLimit,
		text: "The device did not refuse: about {free} of {device} are free, but the framework's allocator gave up without asking the driver. Look for a limit that the " +
			"program sets itself, such as torch.cuda.set_per_process_memory_fraction."},
	{name: "kept", rank: rankFirst, ask: askKept,
		text: "{frees} ({share}) are older than {now} and are neither parameters, gradients, optimizer state nor buffers: something keeps them, most of " +
			"it from {site}.{blocks} {remedy}"},
	{name: "private-pools", ask: askPrivatePools,
		text: "{idle} of the {all} that are cached but idle are in {pools} private pools, as CUDA graphs have them: no other request gets any of it. Capture all graphs into " +
			"one pool (pool=torch.cuda.graph_pool_handle()), the one that needs most first; that gives back about {frees}."},
	{name: "fragmentation", ask: askFragmentation,
		text: "{idle} are cached but idle, in {pieces} pieces of which the largest is {largest}, and the request is {asked}: the cache is fragmented. Let segments grow: " +
			growing + "."},
	{name: "multi-tensor", ask: askMultiTensor,
		text: "{held} ({share}) are temporaries of {step}, a step that makes those of many parameters at once: {instead}."},
	{name: "idle-cache", ask: askIdleCache,
		text: "{frees} are cached but idle in whole segments. Call torch.cuda.empty_cache() before the large request, or from whatever else holds memory on {device}."},
	{name: "other-processes", ask: askOthers,
		text: "Other processes hold {frees} of {device}. nvidia-smi lists them: end what is left over, or choose another device with CUDA_VISIBLE_DEVICES."},
	{name: "fresh", ask: askFresh,
		text: "{fresh} ({share}) came since {since} began and is still held; the largest part is {owner} with {owned}. If these are activations, " +
			"a batch of half the size, or gradient checkpointing (torch.utils.checkpoint), gives back about {frees}."},
	{name: "largest-owner", ask: askLargestOwner,
		text: "{owner} holds {owned}, {share}, and held it before {since} began. Store it in half precision, shard it (FSDP, ZeRO) or keep it on the host; " +
			"half precision alone gives back about {frees}."},
	{name: "untagged", ask: askUntagged,
		text: "{owned}, {share}, are in blocks without a tag, and {frees} more would have been enough. " + smallerStep +
			alsoCheckpointing + ". To see it by the parts of the program, put memtrace.tag(\"...\") or " +
			"NVTX ranges around its parts and call memtrace.step() in each iteration."},
	{name: "tagged", ask: askTagged,
		text: "{owner} holds {owned}, {share}, and {frees} more would have been enough. If a step makes and drops it (activations), a smaller batch" +
			orCheckpointing + " shrinks it; if it stays (weights, caches), so do half precision, sharding (FSDP, ZeRO) and the host. " +
			"memtrace.step() in each iteration lets reports tell which it is."},
	{name: "optimizer-state", ask: askOptimizer,
		text: "{owner} holds {owned}, {share}. An optimizer with 8-bit state, or one that is sharded or kept on the host, gives back about {frees}."},
	{name: "growing", ask: askGrowing,
		text: "Every step begins with more memory held than the one before: {frees} more over the last {steps} steps. Something keeps what it should drop: a loss that is added up " +
			"with its graph (use loss.item()), a list of outputs, a cache."},
	{name: "pool-idle", ask: askPoolIdle,
		text: "{frees} lie idle in stream-ordered memory pools (cudaMallocAsync). cudaMemPoolTrimTo gives them back; a lower release threshold " +
			"(cudaMemPoolAttrReleaseThreshold) keeps them from piling up."},
	{name: "graph-pool", ask: askGraphPool,
		text: "{frees} are held for the allocations of CUDA graphs. cudaDeviceGraphMemTrim gives back what no graph that runs needs."},
	{name: "outside", ask: askOutside,
		text: "{owner} holds {frees} outside of the framework's allocator. Look at its workspaces and caches{known}."},
	{name: "mxnet-pool", ask: askMXNet,
		text: "MXNet's own pool holds {frees}; how much of that is idle is not reported. Try MXNET_GPU_MEM_POOL_TYPE=Round, which reuses blocks of similar sizes, or a smaller batch."},
	{name: "context", ask: askContext,
		text: "{frees} of {device} are this process's CUDA context, its code and what no call accounts for, and all code is loaded at once: CUDA_MODULE_LOADING=LAZY " +
			"loads only what runs."},
	{name: "pinned", rank: rankFirst, ask: askPinned,
		text: "This was pinned host memory, {asked}: the computer's memory, or its limit on locked pages (ulimit -l), ran out, not the device's."},
	{name: "recovered", rank: rankRemark, ask: askRecovered,
		text: "The allocator gave {frees} back to the device and then got what it wanted. The program went on, but giving back and asking again costs time at each such point."},
	{name: "null-gpu", rank: rankRemark, ask: askNullGPU,
		text: "This was the null GPU: its {total} are a setting (memtrace run --null-gpu, or NULLCUDA_MEM), there is no hardware."},
}

type words = map[string]string

func askLargerThanDevice(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	most := e.TotalBytes - min(e.TotalBytes, e.KeptBytes())
	return 0, words{"most": report.SizeText(most)}, e.TotalBytes > 0 && e.RequestedBytes > most
}

// askOwnLimit needs the device's own word: without it nobody knows what is free.
func askOwnLimit(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	applies := e.Level == "framework" && e.Attempts == 0 && e.TotalBytes > 0 && e.FreeBytes >= e.RequestedBytes
	return 0, words{"free": report.SizeText(e.FreeBytes)}, applies
}

// askPrivatePools is for what captures of graphs keep for themselves. In one pool they use the same memory, as much as
// the one that needs most, if that one comes first.
func askPrivatePools(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	a := e.Allocator
	if a == nil || !f.torch() || e.Outcome != report.OOMFailed || len(a.Private) < 2 {
		return 0, nil, false
	}
	idle, frees := report.PrivateBytes(a.Private)
	return frees, words{"idle": report.SizeText(idle), "all": report.SizeText(a.IdleBytes),
		"pools": report.Number(uint64(len(a.Private)))}, sizeable(e, frees)
}

// askMultiTensor is for a step of an optimizer that runs out of memory for its temporaries. One parameter at a time has
// at most two as large as itself (_single_tensor_adam of torch/optim/adam.py, PyTorch 2.7.1), a fused step none.
func askMultiTensor(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	c := e.Composition
	if c == nil || !f.torch() || e.Outcome != report.OOMFailed {
		return 0, nil, false
	}
	held := c.MultiTensorBytes
	single := held - min(held, 2*c.LargestParameterBytes)
	instead, frees := fmt.Sprintf("foreach=False, which makes those of one parameter at a time, gives back about %s",
		report.SizeText(single)), single
	if covers(e, held) && hasFused(c.MultiTensorOf, f.Info["framework.torch"]) {
		also := ""
		if covers(e, single) {
			also = "; " + strings.Replace(instead, " gives back", "", 1)
		}
		instead, frees = "fused=True, which makes none, gives back about "+report.SizeText(held)+also, held
	}
	return frees, words{"held": report.SizeText(held), "share": shareOf(e, held),
		"step": "_multi_tensor_" + c.MultiTensorOf, "instead": instead}, covers(e, frees)
}

// hasFused reports whether an optimizer has a fused step on a GPU: Adam since PyTorch 1.13, AdamW since 2.0.
func hasFused(optimizer, version string) bool {
	return optimizer == "adam" || optimizer == "adamw" && !strings.HasPrefix(version, "1.")
}

// askIdleCache is for memory that another caller than the framework ran short of: for itself the framework gives idle
// segments back.
func askIdleCache(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	a := e.Allocator
	if a == nil || !f.torch() || e.Level == "framework" || e.Outcome != report.OOMFailed {
		return 0, nil, false
	}
	return a.Pieces.WholeFreeBytes, nil, sizeable(e, a.Pieces.WholeFreeBytes)
}

func askOthers(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	if e.Sample == nil {
		return 0, nil, false
	}
	others := e.Sample.OthersBytes
	return others, nil, others > 0 && (covers(e, others) || others >= e.UsedBytes/5)
}

// shareOf is the part that bytes are of what the process can do something about.
func shareOf(e *report.OOMEvent, bytes uint64) string {
	own, of := e.OwnBytes(), "of what is in use"
	if own < e.UsedBytes {
		of = "of what this process is known to have"
	}
	return fmt.Sprintf("%.0f%% %s", 100*float64(bytes)/float64(max(own, 1)), of)
}

func named(row report.LedgerRow) bool { return row.Key != report.Untagged }

// askFresh speaks of what the running step has made so far. Half of it is what half a batch would give back.
func askFresh(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	if e.Since == nil || !strings.HasPrefix(e.Since.What, "step ") || !f.torch() || len(e.Since.Rows) == 0 {
		return 0, nil, false
	}
	top := e.Since.Rows[0]
	w := words{"fresh": report.SizeText(e.Since.Bytes), "share": shareOf(e, e.Since.Bytes), "since": e.Since.What,
		"owner": ownerText(top.Key), "owned": report.SizeText(top.Bytes)}
	return e.Since.Bytes / 2, w, e.Since.Bytes >= e.OwnBytes()/5 && e.Since.Bytes > 0
}

func ownerText(key string) string {
	if key == report.Untagged {
		return "what has no tag"
	}
	return key
}

// askLargestOwner speaks of what was there before the step, so it is nothing that a smaller batch would give back.
func askLargestOwner(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	if !f.torch() || e.Since == nil {
		return 0, nil, false
	}
	var best report.LedgerRow
	for _, row := range e.Ledger("tag").Rows {
		old := row
		for _, y := range e.Since.Rows {
			if y.Key == row.Key && y.Owner == row.Owner {
				old.Bytes -= min(old.Bytes, y.Bytes)
			}
		}
		if row.Owner == report.OwnerBlocks && named(row) && !isOptimizer(row.Key) && old.Bytes > best.Bytes {
			best = old
		}
	}
	w := words{"owner": best.Key, "owned": report.SizeText(best.Bytes), "share": shareOf(e, best.Bytes),
		"since": e.Since.What}
	return best.Bytes / 2, w, best.Bytes > 0 && best.Bytes >= e.OwnBytes()/5
}

// askUntagged is for a program that says nothing about itself, so that no other rule knows what fills the device.
func askUntagged(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("tag").Largest(report.OwnerBlocks, func(r report.LedgerRow) bool { return !named(r) })
	w := words{"owned": report.SizeText(row.Bytes), "share": shareOf(e, row.Bytes)}
	return missing(e), w, found && e.Device >= 0 && f.torch() && e.Outcome == report.OOMFailed && e.Since == nil &&
		missing(e) > 0 && row.Bytes >= e.OwnBytes()/2
}

// askTagged is for a program that names its memory and no steps, so that nobody knows which of it a step makes.
func askTagged(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("tag").Largest(report.OwnerBlocks, func(report.LedgerRow) bool { return true })
	w := words{"owner": row.Key, "owned": report.SizeText(row.Bytes), "share": shareOf(e, row.Bytes)}
	return missing(e), w, found && named(row) && !isOptimizer(row.Key) && e.Device >= 0 && f.torch() &&
		e.Outcome == report.OOMFailed && e.Since == nil && missing(e) > 0 && row.Bytes >= e.OwnBytes()/5
}

func isOptimizer(tag string) bool { return strings.Contains(strings.ToLower(tag), "optim") }

func askOptimizer(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("tag").Largest(report.OwnerBlocks, func(r report.LedgerRow) bool {
		return isOptimizer(r.Key)
	})
	w := words{"owner": row.Key, "owned": report.SizeText(row.Bytes), "share": shareOf(e, row.Bytes)}
	return row.Bytes / 4 * 3, w, found && f.torch() && row.Bytes >= e.OwnBytes()/5
}

// askGrowing wants every step to begin higher than the one before, after the first, which makes gradients and optimizer
// state.
func askGrowing(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	const enough = 4
	steps := e.StepBytes
	if len(steps) < enough+1 {
		return 0, nil, false
	}
	steps = steps[1:]
	for i := 1; i < len(steps); i++ {
		if steps[i] <= steps[i-1] {
			return 0, nil, false
		}
	}
	grown := steps[len(steps)-1] - steps[0]
	return grown, words{"steps": report.Number(uint64(len(steps) - 1))}, sizeable(e, grown) || grown >= steps[0]/20
}

// workspaces names the setting of a library that is known to hold memory of its own.
var workspaces = []struct{ library, setting string }{
	{"libcublas", ": each thread that multiplies matrices has a handle with some of its own"},
	{"libnccl", ": NCCL_BUFFSIZE and the number of channels (NCCL_MAX_NCHANNELS) shape them"},
	{"libcudnn", ": torch.backends.cudnn.benchmark chooses algorithms that need them"},
}

func askOutside(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("library").Largest(report.OwnerOutside, func(report.LedgerRow) bool { return true })
	w := words{"owner": row.Key, "known": ""}
	for _, known := range workspaces {
		if strings.HasPrefix(row.Key, known.library) {
			w["known"] = known.setting
		}
	}
	return row.Bytes, w, found && sizeable(e, row.Bytes) && row.Bytes >= e.OwnBytes()/10
}

func askPoolIdle(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("tag").Largest(report.OwnerPoolIdle, func(report.LedgerRow) bool { return true })
	return row.Bytes, nil, found && sizeable(e, row.Bytes)
}

func askGraphPool(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("tag").Largest(report.OwnerGraphPool, func(report.LedgerRow) bool { return true })
	return row.Bytes, nil, found && sizeable(e, row.Bytes)
}

func askMXNet(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	row, found := e.Ledger("library").Largest(report.OwnerBlocks, func(r report.LedgerRow) bool {
		return strings.HasPrefix(r.Key, "libmxnet")
	})
	return row.Bytes, nil, found && sizeable(e, row.Bytes)
}

// askContext is for code that is loaded as a whole, which is not so by default since CUDA 12.2 (CUDA C++ Programming
// Guide, Lazy Loading). Nothing else that a program can set makes a context smaller.
func askContext(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	if e.Sample == nil || !e.Sample.ShareKnown {
		return 0, nil, false
	}
	var major, minor int
	version, _ := fmt.Sscanf(f.Info["cuda.driver_version"], "%d.%d", &major, &minor)
	loading := f.Info["env.CUDA_MODULE_LOADING"]
	whole := loading == "EAGER" || loading == "" && version == 2 && (major < 12 || major == 12 && minor < 2)
	own := e.Sample.ContextBytes + uint64(max(e.Sample.RemainderBytes, 0))
	return own, nil, whole && own >= e.OwnBytes()/5 && own > 0
}

func askPinned(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	return 0, nil, e.Memory == "host" || e.Memory == "registered"
}

func askRecovered(e *report.OOMEvent, _ AdviceFacts) (uint64, words, bool) {
	return e.ReleasedBytes, nil, e.Outcome == report.OOMRecovered && e.ReleasedBytes > 0
}

func askNullGPU(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	return 0, nil, f.Info["nullgpu"] == "1" && e.TotalBytes > 0
}
