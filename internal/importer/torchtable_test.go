package importer

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"maps"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestSnapshots imports snapshots that PyTorch writes only now and then, and such as it never writes: what is in them
// is taken in as it is, refused, or counted among what is left out.
func TestSnapshots(t *testing.T) {
	alloc, large := rec("alloc", base, 512, 10), seg(base, 26*mib, "large", blk(base, 26*mib, 0, "inactive"))
	whole := seg(base, 2*mib, "small", blk(base, 512, 512, "active_allocated"), blk(base+512, 2*mib-512, 0, "inactive"))
	block := whole[len(whole)-1].(items)[0].(with)
	inSegment := func(b with) with { return snap(items{seg(base, 2*mib, "small", b)}) }
	far := make(items, 300)
	for i := range far {
		far[i] = items{}
	}
	far[0], far[299] = items{alloc}, items{alloc, rec("free_requested", base, 512, 11)}
	for _, c := range []struct {
		name     string
		snapshot any
		peak     uint64 // of PyTorch's blocks
		live     uint64
		words    string // of what the trace lacks; of the error, if peak is 0 and it is not empty
	}{
		{"as usual", snap(items{whole}, rec("segment_alloc", base, 2*mib, 9), alloc), 512, 512, ""},

		// Blocks of older segments, whose rest was not split off: their size follows from the segments, or from what is
		// free there.
		{"live at the end", snap(items{seg(base, 26*mib, "large", blk(base, 26*mib, 25*mib+512, "active_allocated"))},
			rec("alloc", base, 25*mib+512, 10)), 26 * mib, 26 * mib, ""},
		{"freed again", snap(items{large}, rec("alloc", base, 25*mib+512, 10), rec("free_requested", base,
			25*mib+512, 11),
			rec("free_completed", base, 25*mib+512, 11)), 26 * mib, 0, ""},
		{"segment returned", snap(items{}, rec("alloc", base, 25*mib+512, 10), rec("free_requested", base,
			25*mib+512, 11),
			rec("free_completed", base, 25*mib+512, 11), rec("segment_free", base, 26*mib, 12)), 26 * mib, 0, ""},
		{"older, and freed", snap(items{large}, rec("free_requested", base, 25*mib+512, 11),
			rec("free_completed", base, 25*mib+512, 11)), 26 * mib, 0, "older (1)"},
		{"behind an older one", snap(items{seg(base, 26*mib, "large", blk(base, 10*mib, 10*mib, "active_allocated"),
			blk(base+10*mib, 16*mib, 0, "inactive"))}, rec("alloc", base+10*mib, 15*mib+512, 10),
			rec("free_requested", base+10*mib, 15*mib+512, 11), rec("free_completed", base+10*mib, 15*mib+512, 12)),
			26 * mib, 10 * mib, ""},
		{"split off", snap(items{large}, rec("alloc", base, 20*mib, 10), rec("free_requested", base, 20*mib, 11),
			rec("free_completed", base, 20*mib, 11)), 20 * mib, 0, ""},
		{"waits for a stream", snap(items{large}, rec("free_completed", base, 10*mib, 9), rec("alloc", base, 26*mib,
			10),
			rec("free_requested", base, 26*mib, 11)), 26 * mib, 0, ""},
		{"another size at last", snap(items{seg(base, 26*mib, "large", blk(base, 26*mib, 25*mib+512,
			"active_allocated"))},
			rec("alloc", base, 2*mib, 10), rec("free_requested", base, 2*mib, 11), rec("free_completed", base, 2*mib,
				11),
			rec("alloc", base, 25*mib+512, 12)), 26 * mib, 26 * mib, ""},
		{"the end denies it", snap(items{large}, rec("alloc", base, 2*mib, 10)), 2 * mib, 2 * mib,
			"Blocks of which the history and the segments say different things: 1"},

		// Settings of the allocator.
		{"steps of an eighth", append(snap(items{}, rec("segment_alloc", base, 40*mib, 9), rec("alloc", base,
			17*mib+1, 10)),
			"allocator_settings", with{"max_split_size", -1, "roundup_power2_divisions", with{"1", 0, "16", 8}}),
			18 * mib, 18 * mib, ""},
		{"large blocks stay whole", append(snap(items{}, rec("segment_alloc", base, 40*mib, 9), rec("alloc", base,
			30*mib, 10)),
			"allocator_settings", with{"max_split_size", 25 * mib}), 40 * mib, 40 * mib, ""},
		{"settings that are none", append(snap(items{}, rec("segment_alloc", base, 40*mib, 9), rec("alloc", base,
			30*mib, 10)),
			"allocator_settings", with{"max_split_size", "x", "roundup_power2_divisions", 7}), 30 * mib, 30 * mib, ""},

		// Times.
		{"backwards", snap(items{whole}, rec("segment_alloc", base, 2*mib, 9), alloc, rec("alloc", base+1024, 512, 5),
			rec("free_requested", base+1024, 512, 11)), 1024, 512,
			"Records whose time is before that of the one above: 1"},
		{"no times", snap(items{whole}, replaced(rec("segment_alloc", base, 2*mib, 9), "time_us", nil),
			replaced(alloc, "time_us", nil)), 512, 512, "Its records have no times"},

		// Devices.
		{"devices from 256 on", with{"segments", items{whole, replaced(whole, "device", 299)}, "device_traces", far},
			512, 512,
			"not numbered from 0 to 255 were left out: 3"},
		{"a device without number", snap(items{replaced(whole, "device", nil)}), 0, 0,
			"the device of a segment is missing"},
		{"a negative device", snap(items{whole, replaced(whole, "device", -2)}), 512, 512,
			"from 0 to 255 were left out: 1"},

		// Sizes that are none.
		{"a text", snap(items{}, replaced(alloc, "size", "5")), 0, 0, "the size is not a number of bytes"},
		{"a fraction", snap(items{}, replaced(alloc, "size", 1.5)), 0, 0, "damaged at offset"},
		{"negative", snap(items{}, replaced(alloc, "size", -1)), 0, 0, "the size is not a number of bytes"},
		{"a truth", snap(items{}, replaced(alloc, "size", true)), 0, 0, "the size is not a number of bytes"},
		{"nothing", snap(items{}, replaced(alloc, "size", nil)), 0, 0, "the size is missing"},
		{"no address", snap(items{}, replaced(alloc, "addr", nil)), 0, 0, "the address is missing"},
		{"an address that is none", snap(items{}, replaced(alloc, "addr", "0x7f")), 0, 0,
			"the address is not a whole number"},
		{"too large for its address", snap(items{}, replaced(replaced(alloc, "addr", -512), "size", 1<<40)), 0, 0,
			"ends beyond all addresses"},
		{"a time that is none", snap(items{}, replaced(alloc, "time_us", "noon")), 0, 0,
			"the time is not a whole number"},
		{"a block's size", inSegment(replaced(block, "size", "5")), 0, 0, "the size of a block is not a number"},
		{"a block without", inSegment(replaced(block, "size", nil)), 0, 0, "the size of a block is missing"},
		{"a block's request", inSegment(replaced(block, "requested_size", -4)), 0, 0, "the requested size of a block"},
		{"a segment's size", snap(items{replaced(whole, "total_size", 1.5)}), 0, 0,
			"the size of a segment is not a number"},
		{"a segment without", snap(items{replaced(whole, "total_size", nil)}), 0, 0,
			"the size of a segment is missing"},
		{"no blocks", snap(items{replaced(whole, "blocks", 7)}), 0, 0, "the blocks of a segment are no list"},

		// What is not known.
		{"a state", snap(items{seg(base, 2*mib, "small", block, blk(base+512, 512, 5, "resting"))}), 512, 512,
			"Blocks of an unknown state were left out: 1"},
		{"no state", snap(items{seg(base, 2*mib, "small", block, replaced(blk(base+512, 512, 5, ""), "state",
			nil))}), 512, 512,
			"Blocks of an unknown state were left out: 1"},
		{"an action", snap(items{whole}, rec("segment_alloc", base, 2*mib, 9), alloc, rec("dance", base, 1, 11)),
			512, 512,
			"Records of unknown kind were left out: 1"},
		{"no action", snap(items{whole}, rec("segment_alloc", base, 2*mib, 9), alloc, replaced(alloc, "action",
			nil)), 512, 512,
			"Records of unknown kind were left out: 1"},
		{"no history", snap(items{whole}), 512, 512, "It holds no history"},
	} {
		events, result, err := imported(t, pickled(c.snapshot))
		if same, _, wrong := imported(t, []byte(inJSON(c.snapshot))); len(same) != len(events) ||
			(err == nil) != (wrong == nil) {
			t.Errorf("%s, as JSON: %d events of %d, %v", c.name, len(same), len(events), wrong)
		}
		if c.peak == 0 {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v, want %q", c.name, err, c.words)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var live, peak uint64
		last := int64(0)
		for _, e := range events {
			if e.Time < last {
				t.Errorf("%s: event %d is older than the one before", c.name, e.Seq)
			}
			last = e.Time
			if e.Level != cuda.LevelFramework {
				continue
			}
			if live += e.Size; e.Kind == trace.EventFree {
				live -= 2 * e.Size
			}
			peak = max(peak, live)
		}
		lacks := strings.Join(result.Lacks, "\n")
		if peak != c.peak || live != c.live || !strings.Contains(lacks, c.words) ||
			c.words == "" && strings.Contains(lacks, "left out") {
			t.Errorf("%s: peak %d, live %d, lacks %q; want %d, %d, %q", c.name, peak, live, lacks, c.peak, c.live,
				c.words)
		}
	}
}

// TestListsOfSegments imports what torch.cuda.memory_snapshot() returns, as users save it.
func TestListsOfSegments(t *testing.T) {
	list := items{seg(base, 2*mib, "small", blk(base, 512, 512, "active_allocated"), blk(base+512, 2*mib-512, 0,
		"inactive")),
		seg(base+4*mib, 20*mib, "large", blk(base+4*mib, 20*mib, 19*mib, "active_allocated"))}
	for _, data := range []string{string(pickled(list)), inJSON(list), " \n" + inJSON(list)} {
		f, err := Recognize(strings.NewReader(data), int64(len(data)))
		if err != nil || f.Name != "torch" {
			t.Fatalf("%v, %v", f, err)
		}
		events, result, err := imported(t, []byte(data))
		if err != nil || len(events) != 4 || events[3].Size != 20*mib || events[3].Rest != 1+mib {
			t.Errorf("%d events, %v", len(events), err)
		}
		says(t, result, "It holds no history")
	}
	for _, c := range []struct{ text, want string }{
		{inJSON(list)[:200], "cut at offset 200"}, {"[{\"total_size\": 1, ]", "damaged at offset"},
		{inJSON(list) + "[]", "more follows"}, {"[{\"total_size\": 1}]", "no memory snapshot"},
		{"{\"segments\": []}", "no memory snapshot"},
		{"[{\"total_size\": " + strings.Repeat("[", 1000), "too deep"},
	} {
		if _, _, err := imported(t, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestUnpack reads compressed files, and the beginning of one.
func TestUnpack(t *testing.T) {
	var packed, frame bytes.Buffer
	gz := gzip.NewWriter(&packed)
	_, _ = gz.Write(sample(t, "adam.pickle"))
	_ = gz.Close()
	zs, _ := zstd.NewWriter(&frame)
	_, _ = zs.Write(sample(t, "adam.pickle"))
	_ = zs.Close()
	for _, file := range [][]byte{packed.Bytes(), frame.Bytes(), sample(t, "adam.pickle")} {
		content, size, err := Unpack(bytes.NewReader(file), int64(len(file)), nil, 0)
		if err != nil || size != int64(len(sample(t, "adam.pickle"))) {
			t.Fatalf("%d bytes, %v", size, err)
		}
		if f, err := Recognize(content, size); err != nil || f.Name != "torch" {
			t.Errorf("%v, %v", f, err)
		}
	}
	for _, file := range [][]byte{packed.Bytes()[:1000], frame.Bytes()[:1000]} {
		if _, _, err := Unpack(bytes.NewReader(file), int64(len(file)), nil, 0); err == nil ||
			!strings.Contains(err.Error(), "has no end") {
			t.Errorf("cut: %v", err)
		}
	}
	for _, file := range [][]byte{packed.Bytes(), frame.Bytes()} {
		if _, size, err := Unpack(bytes.NewReader(file), int64(len(file)), nil, 100); err != nil || size != 100 {
			t.Errorf("the beginning: %d bytes, %v", size, err)
		}
	}
}

// TestTorchOfDevicesWithTheSameAddresses keeps blocks of two devices apart, as recorded in two processes.
func TestTorchOfDevicesWithTheSameAddresses(t *testing.T) {
	alloc, segment := rec("alloc", base, 512, 10), rec("segment_alloc", base, 2*mib, 9)
	both := with{"segments", items{}, "device_traces", items{items{segment, alloc}, items{segment, alloc,
		rec("free_requested", base, 512, 12)}}}
	events, _, err := imported(t, pickled(both))
	if err != nil {
		t.Fatal(err)
	}
	blocks := events[:0]
	for _, e := range events {
		if e.Level == cuda.LevelFramework {
			blocks = append(blocks, e)
		}
	}
	if got := peaks(t, blocks); !maps.Equal(got, map[int16]uint64{0: 512, 1: 512, -1: 1024}) {
		t.Errorf("peaks %v", got)
	}
}

// TestNativeFrames imports stacks of native and Python frames as PyTorch records them: a backward pass has native ones
// only.
func TestNativeFrames(t *testing.T) {
	frame := func(name, file string, line int) with { return with{"name", name, "filename", file, "line", line} }
	softmax := frame("torch::autograd::generated::SoftmaxBackward0::apply(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)",
		"??", 0)
	mixed := items{frame("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??", 0),
		frame("forward", "/a/model.py", 7), frame("call_impl", "/a/module.py", 8),
		frame("_PyObject_Call", "/usr/local/src/Objects/call.c", 300), frame("main", "/usr/bin/torchrun", 9)}
	stack := func(addr, time int, frames items) with {
		return replaced(rec("alloc", addr, 512, time), "frames", frames)
	}
	segment := seg(base, 2*mib, "small", blk(base, 512, 512, "active_allocated"), blk(base+512, 512, 512,
		"active_allocated"),
		blk(base+1024, 512, 512, "active_allocated"), blk(base+1536, 2*mib-1536, 0, "inactive"))
	events, r, result, err := run(t, Find("torch"), pickled(snap(items{segment}, rec("segment_alloc", base, 2*mib, 1),
		stack(base, 2, items{softmax}), stack(base+512, 3, mixed), stack(base+1024, 4, items{frame("f", "/a/b.py",
			1)}))))
	if err != nil {
		t.Fatal(err, result)
	}
	names := func(e trace.Event) (list []string) {
		for _, pc := range r.Tables().Stack(e.Stack) {
			m, _ := r.Tables().ModuleAt(pc - 1)
			symbols, _ := r.Tables().Symbol(m.ID, pc)
			for _, s := range symbols {
				list = append(list, m.Path+" "+s.Function)
			}
		}
		frames, _ := r.Tables().PyStack(e.PyStack)
		for _, f := range frames {
			list = append(list, map[bool]string{true: "entry "}[f.Entry]+nameOf(r, f))
		}
		return list
	}
	for i, want := range []string{"[native] torch::autograd::generated::SoftmaxBackward0::apply",
		"[native] at::_ops::mm::call; python _PyEval_EvalFrameDefault; python _PyObject_Call; " +
			"python _PyEval_EvalFrameDefault; forward; entry call_impl; entry main", "f"} {
		if got := strings.Join(names(events[i+1]), "; "); got != want {
			t.Errorf("stack %d: %s\nwant %s", i, got, want)
		}
	}
	if r.Info()["python.eval"] == "" {
		t.Error("nothing tells where the interpreter's loop lies")
	}
}

func TestNamesLoseTheirParameters(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"main", "main"},
		{"at::add(at::Tensor const&, at::Tensor const&)", "at::add"},
		{"at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>, c10::Allocator*)",
			"at::detail::_empty_generic<long>"},
		{"torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Node::operator()"},
		{"at::native::(anonymous namespace)::addmm_out(at::Tensor&, void (*)(int)) [clone .isra.0]",
			"at::native::(anonymous namespace)::addmm_out"},
		{"f(int)::{lambda(int)#1}::operator()(int) const", "f(int)::{lambda(int)#1}::operator()"},
		{"c10::wrap<c10::F<at::Tensor (at::Tensor const&), &at::g>, at::Tensor>::call(int)",
			"c10::wrap<c10::F<at::Tensor (at::Tensor const&), &at::g>, at::Tensor>::call"},
		{"void at::native::gpu_kernel<Op<float> >(at::TensorIteratorBase&, Op<float> const&)",
			"at::native::gpu_kernel<Op<float> >"},
		{"operator new(unsigned long)", "operator new"},
		{"bool c10::operator==(c10::A const&, c10::A const&)", "c10::operator=="},
		{"_ZN2at3addERKNS_6TensorE", "at::add"},
		{"c10::TensorImpl::~TensorImpl() [clone .localalias]", "c10::TensorImpl::~TensorImpl"},
		{"std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()"},
		{"a::operator bool() const", "a::operator bool"},
		{"((((", ""},
	} {
		if got := withoutParameters(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestOtherTables are the tables of MXNet with what may be wrong in them.
func TestOtherTables(t *testing.T) {
	heading := "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\"\n"
	row := "\"s:in_arg:w\",\"512\",\"gpu(1)\",\"1024\",\"0\"\n"
	for _, c := range []struct {
		name, format, text string
		want               map[int16]uint64
		words              string
	}{
		{"two devices", "mxnet-scopes", heading + row + "\"s:in_arg:v\",\"512\",\"gpu(0)\",\"512\",\"0\"\n",
			map[int16]uint64{0: 512, 1: 1024, -1: 1536}, ""},
		{"cut", "mxnet-scopes", heading + row + "\"s:in_arg:v\",\"51", map[int16]uint64{1: 1024, -1: 1024},
			"The last line is cut"},
		{"UTF-16", "mxnet-scopes", in16(heading+row, binary.LittleEndian, true), map[int16]uint64{1: 1024, -1: 1024}, ""},
		{"thousands", "mxnet-scopes", heading + strings.Replace(row, "1024", "1,024", 1), nil, "numbers of bytes"},
		{"fractions", "mxnet-scopes", heading + strings.Replace(row, "1024", "1024.5", 1), nil, "numbers of bytes"},
		{"cut in its size", "mxnet-csv", "in_arg:a,1.5\nin_arg:b,12", map[int16]uint64{0: 3 * mib / 2, -1: 3 * mib / 2},
			"The last line is cut"},
		{"a decimal comma", "mxnet-csv", "in_arg:a,1,5\nin_arg:b,2\n", nil,
			"line 1: \"in_arg:a,1,5\": the number can be read in two ways"},
		{"UTF-16", "mxnet-csv", in16("in_arg:a,1.5\n", binary.BigEndian, true), map[int16]uint64{0: 3 * mib / 2, -1: 3 * mib / 2}, ""},
		{"UTF-16", "mxnet-log", in16("[mem] Allocate 512 bytes GPU memory (a).\n", binary.LittleEndian, true),
			map[int16]uint64{0: 512, -1: 512}, ""},
		{"a decimal comma", "mxnet-log", "[mem] Allocate 512 bytes GPU memory (a).\n[mem] 155,5 MB GPU global memory free, total 161,0 MB.\n",
			map[int16]uint64{0: 512, -1: 512}, "could not be read were left out: 1"},
	} {
		events, _, result, err := run(t, Find(c.format), []byte(c.text))
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s, %s: %v, want %q", c.format, c.name, err, c.words)
			}
			continue
		}
		driver := events[:0]
		for _, e := range events {
			if e.Level == cuda.LevelDriver {
				driver = append(driver, e)
			}
		}
		if got := peaks(t, driver); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s, %s: %v, %v; want %v", c.format, c.name, got, err, c.want)
		}
		if lacks := strings.Join(result.Lacks, "\n"); !strings.Contains(lacks, c.words) {
			t.Errorf("%s, %s: lacks %q, want %q", c.format, c.name, lacks, c.words)
		}
	}
}
