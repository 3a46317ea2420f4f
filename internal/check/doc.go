// Package check holds traces against a memory budget: which gates there are and how they are written, on a command line
// or in memtrace.toml; what each measures in a summary; baselines and the noise between runs; the sentence on who grew;
// and the results as text, JSON, JUnit, SARIF, Markdown and annotations of GitHub. It reads traces through a function
// that its caller provides.
//
// Gates compare live and requested bytes. What a caching allocator reserves depends on the order of requests, so that
// identical work may differ by a tenth: no gate compares that.
package check
