package symbol

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Nothing that a compiler mangled stays so, in programs of every language and scheme.
func TestAllNamesAreDemangled(t *testing.T) {
	for _, c := range []struct {
		compiler, source string
		flags            []string
	}{
		{"g++", "inlined.cc", []string{"-O2", "-g"}},
		{"clang++", "inlined.cc", []string{"-O2", "-g"}},
		{"rustc", "inlined.rs", []string{"-O", "-g"}},
		{"rustc", "inlined.rs", []string{"-O", "-g", "-Csymbol-mangling-version=v0"}},
	} {
		t.Run(strings.Join(append([]string{c.compiler}, c.flags...), " "), func(t *testing.T) {
			path := compiled(t, c.compiler, c.source, c.flags...)
			r := resolverOf(t, path, 0, Options{Sources: []string{}})
			names := functionNames(t, path)
			r.Warm(pcsOf(spread(slices.Sorted(maps.Keys(names)), 5000)))
			seen := make(map[string]bool)
			for _, frames := range r.native {
				for _, f := range frames {
					seen[f.Function] = true
					if strings.HasPrefix(f.Function, "_ZN") || strings.HasPrefix(f.Function, "_R") ||
						strings.Contains(f.Function, "$LT$") || strings.Contains(f.Function, "17h") {
						t.Errorf("mangled: %s", f.Function)
					}
				}
			}
			wanted := "shop::Basket::sum"
			if c.compiler == "rustc" {
				wanted = "inlined::main"
			}
			if !seen[wanted] {
				t.Errorf("%s is not among %d functions", wanted, len(seen))
			}
		})
	}
}

func TestReadable(t *testing.T) {
	for _, c := range []struct{ linked, full, brief string }{
		{"main", "main", "main"},
		{"table_lookup.constprop.0", "table_lookup", "table_lookup"},
		{"rarely.part.0.cold", "rarely", "rarely"},
		{"_ZN2at6native3addERKNS_6TensorES3_RKN3c106ScalarE", "at::native::add", "at::native::add"},
		{"_ZN4shop12_GLOBAL__N_14Item5taxedEd.isra.0", "shop::(anonymous namespace)::Item::taxed",
			"shop::(anonymous namespace)::Item::taxed"},
		{"_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size",
			"std::vector<int, std::allocator<int> >::size"},
		{"_ZNSt6vectorIN4shop12_GLOBAL__N_14ItemESaIS2_EE12emplace_backIJS2_EEERS2_DpOT_",
			"std::vector<shop::(anonymous namespace)::Item, std::allocator<shop::(anonymous namespace)::Item> >::emplace_back<shop::(anonymous namespace)::Item>",
			"std::vector<...>::emplace_back<...>"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt",
			"core::fmt::Write::write_fmt"},
		{"_RNvCs4fqI2P2rA04_7mycrate3foo", "mycrate::foo", "mycrate::foo"},
		{"_Znwm", "operator new", "operator new"},
		{"_Z", "_Z", "_Z"},
		{"_ZN", "_ZN", "_ZN"},
		{"", "", ""},
	} {
		if full, brief := readable(c.linked); full != c.full || brief != c.brief {
			t.Errorf("%s:\n  %q, %q\n  want %q, %q", c.linked, full, brief, c.full, c.brief)
		}
	}
}

func TestElideArguments(t *testing.T) {
	for name, want := range map[string]string{
		"a::b<c<d>, e>::f<g>":                   "a::b<...>::f<...>",
		"a::operator<":                          "a::operator<",
		"a::operator<< <b<c> >":                 "a::operator<< <...>",
		"a<b>::operator()":                      "a<...>::operator()",
		"a<b>::operator->":                      "a<...>::operator->",
		"a<b>::operator-><c>":                   "a<...>::operator-><...>",
		"a::cooperator<b>::f":                   "a::cooperator<...>::f",
		"a<(b->c)>::d":                          "a<...>::d",
		"<T as core::Trait<U>>::f::<V>":         "<T as core::Trait<...>>::f::<...>",
		"<a::B<C> as d::E>::f":                  "<a::B<...> as d::E>::f",
		"a<b<c>::d<e> (*)(f<g>)>::{lambda()#1}": "a<...>::{lambda()#1}",
		"a<b":                                   "a<...>",
		"a>b":                                   "a>b",
	} {
		if got := elideArguments(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
