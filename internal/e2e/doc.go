// Package e2e holds the end-to-end tests: real frameworks train on the null GPU under the library, started as a user
// would, and their own counters are the oracle. They need the build tag e2e, gcc, and virtual environments that
// testdata/nullcuda/venv.py makes (downloads are cached outside the tree):
//
//	make e2e
package e2e
