#!/bin/bash
# The C tests: the library's C half plain and under sanitizers, the public header, the built library's exports and its dlsym, the null GPU.
# Everything is compiled first, once for each set of flags. Then groups of tests run beside each other, JOBS at a time (as many as there are processors); what a group
# says appears when it has ended, and last how long each took.
# Usage: scripts/test-c.sh [--all-pythons] [NAME...]
#   --all-pythons   the Python tests in every interpreter there is, the nightly form; without it in python3 and in those that PYTHONS names (paths, separated by colons)
#   NAME...         only these of: ring dict tag pool nvtx nvtxmark nvml output config clock region cgroup array unwind capture cfi stackmap symbol pystack python splitranges backward allocator growth namerow table rows header imports library null
# TIER=core leaves out the thread sanitizer, the Python tests under the others, and what the other sanitizers' tests have as well.
set -u
cd "$(dirname "$0")/.." || exit
out=build/ctest
cc=${CC:-gcc}
flags="-std=gnu11 -g -Wall -Wextra -Werror -fvisibility=hidden -Icshim"
library=${MEMTRACE_LIBRARY:-build/libmemtrace.so}
jobs=${JOBS:-$(nproc)}
hung=1800 # seconds after which a program counts as hung; no measure of speed
passed=0  # of the group
failed=0

all_pythons=
[[ ${1:-} != --all-pythons ]] || { all_pythons=1 && shift; }
wanted() { [[ " $only " == "  " || " $only " == *" $1 "* ]]; }
only="$*"
PYTHONS=${PYTHONS:-}

note() { # adds a test program's own sums, or one failure if it did not get that far
  local sums
  sums=$(grep -Eo '[0-9]+ passed, [0-9]+ failed' "$2" | tail -n 1)
  if [[ -n $sums ]]; then
    read -r p _ f _ <<<"${sums//,/}"
    passed=$((passed + p)) failed=$((failed + f))
    [[ $1 == 0 || $f != 0 ]] && return
  fi
  [[ $1 == 0 ]] || failed=$((failed + 1))
}

groups=()

# group NAME COMMAND...: runs a group of tests when one of those before it has ended. Groups share no folder below $out and no variable.
group() {
  local log=$out/groups/$1.log sums=$out/groups/$1.sums TIMEFORMAT="%0R %0U %0S"
  groups+=("$1")
  shift
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
  {
    { time "$@" >"$log" 2>&1; } 2>"$sums.time"
    echo "$passed $failed" >"$sums"
    flock "$out/groups/lock" cat "$log"
  } &
}

# total waits for all groups and adds their sums; one that did not come to its end has failed.
total() {
  local name p f real user system
  wait
  for name in "${groups[@]}"; do
    if ! read -r p f <"$out/groups/$name.sums"; then
      echo "failed: $name has no sums" >&2
      p=0 f=1
    fi
    read -r real user system <"$out/groups/$name.sums.time" &&
      printf '%-17s %6d passed, %d failed, %4d s, %4d s of processor time\n' "$name" "$p" "$f" "$real" $((user + system))
    passed=$((passed + p)) failed=$((failed + f))
  done
}

check() { # check TEXT COMMAND...: one check that a command decides
  local text=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "failed: $text" >&2
  fi
}

# The sets of flags that the C half is compiled with. Position-independent code and the model of thread-local variables come with the rules of the build, so the tests
# without sanitizers, those in interpreters and those of its imports share the objects that the library is made of.
declare -A flags_of=(
  [plain]="-O2"
  [sanitized]="-O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
  [threads]="-O1 -fsanitize=thread -Wno-tsan"
)

# cshim_of SET: where the C half compiled with a set of flags lies
cshim_of() { [[ $1 == plain ]] && echo build/cshim || echo "$out/$1/cshim"; }

# compile SET: all of the C half, by the rules of the build, and what the tests share
compile() {
  local set=$1 source
  local make=(make -s -f cshim/cshim.mk -j "$jobs" "CSHIM_OUT=$(cshim_of "$set")")
  [[ $set == plain ]] || make+=("CC=$cc" "CSHIM_EXTRA=${flags_of[$set]}")
  mkdir -p "$out/$set" && "${make[@]}" cshim || return 1
  for source in check oracle; do
    $cc $flags ${flags_of[$set]} -c "cshim/ctest/$source.c" -o "$out/$set/$source.o" || return 1
  done
}

# objects SET [NAME...]: the C half's objects but those NAMEs
objects() {
  local set=$1 object
  shift
  for object in $(<"$(cshim_of "$set")/members"); do
    [[ " $* " == *" $(basename "$object" .o) "* ]] || echo "$object"
  done
}

# The routes and the hooks of limits, which would put their dlsym and getrlimit before a sanitizer's.
apart="route start limithooks"

# unwind_guests FOLDER: libraries that the unwinder's test loads
unwind_guests() {
  local width
  for width in narrow:200 wide:240; do
    $cc -O2 -fomit-frame-pointer -shared -fPIC -DWIDTH="${width#*:}" cshim/ctest/unwind_reloaded.c -o "$1/unwind_${width%:*}.so" || return 1
  done
  ! command -v "${CXX:-g++}" >/dev/null ||
    ${CXX:-g++} -std=c++17 -O2 -Wall -Wextra -Werror -fvisibility=hidden -shared -fPIC cshim/ctest/unwind_cxx.cpp -o "$1/unwind_cxx.so"
}

# torch_guests FOLDER: what the test of backward.c takes for PyTorch
torch_guests() {
  local guest="$cc -O2 -Wall -Wextra -Werror -shared -fPIC cshim/ctest/backward_torch.c"
  mkdir -p "$1/threadless" "$1/variables"
  $guest -o "$1/libtorch_python.so" && $guest -DFAKE_VARIABLES -o "$1/variables/libc10.so" && $guest -DFAKE_VARIABLES -o "$1/variables/libtorch_cpu.so" || return 1
  $guest -o "$1/libc10.so" && $guest -o "$1/libtorch_cpu.so" && $guest -DFAKE_THREADLESS -o "$1/threadless/libtorch_cpu.so"
}

# allocator_guests FOLDER: what the test of cshim/allocator takes for PyTorch's allocator, where there is a C++ compiler
allocator_guests() {
  local guest="${CXX:-g++} -std=c++17 -O2 -g -Wall -Wextra -Werror -fvisibility=hidden -shared -fPIC cshim/ctest/allocator_torch.cpp"
  mkdir -p "$1/newer" "$1/other" "$1/stripped"
  command -v "${CXX:-g++}" >/dev/null || return 0
  $guest -o "$1/libc10_cuda.so" && $guest -DFAKE_NEWER -o "$1/newer/libc10_cuda.so" && $guest -DFAKE_OTHER -o "$1/other/libc10_cuda.so" && $guest -s -o "$1/stripped/libc10_cuda.so"
}

run_tests() { # run_tests SET "NAMES"
  local set=$1 selected="" name program log status objects
  for name in $2; do wanted "$name" && selected+=" $name"; done
  echo "== $set"
  mapfile -t objects < <(objects "$set" $apart)
  [[ " $selected " != *" backward "* ]] || torch_guests "$out/$set" || failed=$((failed + 1))
  [[ " $selected " != *" allocator "* ]] || allocator_guests "$out/$set" || failed=$((failed + 1))
  [[ " $selected " != *" unwind "* ]] || unwind_guests "$out/$set" || failed=$((failed + 1))
  for name in $selected; do
    program=$out/$set/${name}_test log=$program.log
    if ! $cc $flags ${flags_of[$set]} "cshim/ctest/${name}_test.c" "$out/$set"/{check,oracle}.o "${objects[@]}" -o "$program" -ldl -lpthread; then
      failed=$((failed + 1))
      continue
    fi
    timeout "$hung" "$program" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    note "$status" "$log"
  done
}

test_header() {
  local dir=$out/header standard compiler source
  echo "== header"
  mkdir -p "$dir"
  check "the header's stand-in library compiles" $cc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -Icshim/include cshim/include/test/fake_memtrace.c -o "$dir/libfake.so"
  for standard in c99 c11 c17 c++98 c++11 c++17; do
    compiler=$cc source=cshim/include/test/tags.c
    [[ $standard == c++* ]] && compiler=${CXX:-g++} source=cshim/include/test/tags.cpp
    check "$source compiles as $standard" $compiler -std=$standard -pedantic -Wall -Wextra -Werror -Icshim/include $source -o "$dir/tags-$standard"
    check "$standard without the library" test "$("$dir/tags-$standard" 2>&1)" = 0
    check "$standard with it" test "$(MEMTRACE_FAKE_LOG=$dir/log LD_PRELOAD=$PWD/$dir/libfake.so "$dir/tags-$standard" 2>&1)" = 1
    check "$standard without the API compiles" $compiler -std=$standard -DMEMTRACE_NO_API -Wall -Wextra -Werror -Icshim/include $source -o "$dir/none-$standard"
    check "$standard without the API" test "$(LD_PRELOAD=$PWD/$dir/libfake.so "$dir/none-$standard" 2>&1)" = 0
  done
}

expected_exports() {
  sed -nE 's/^MT_(HOOK|CUSTOM)\([0-9]+, [A-Z]+, ([A-Za-z0-9_]+),.*/\2/p; s/^MT_REPORT\([0-9]+, [A-Za-z0-9_]+, ([A-Za-z0-9_]+),.*/\1/p' cshim/hooks.def
  printf '%s\n' dlsym dlclose _exit _Exit getenv getrlimit getrlimit64 setrlimit setrlimit64 prlimit prlimit64 prctl InitializeInjectionNvtx2 cuGetProcAddress cuGetProcAddress_v2 memtrace_attach memtrace_held memtrace_referrers
  sed -nE 's/^MEMTRACE_API .*(memtrace_[a-z_]+)\(.*/\1/p' cshim/include/memtrace.h
}

# Undefined names that do not carry a version of the C library, less the weak ones of the linker's own, of the loader's, and those that a library for an old glibc
# finds where there is a newer one.
foreign_symbols() {
  nm -D --undefined-only "$library" | awk '{print $1, $NF}' | grep -vE '@GLIBC_[0-9.]+$' | grep -vE '^[wv] (__gmon_start__|_ITM_(de)?registerTMCloneTable|__cxa_finalize|__libc_stack_end|__tls_get_addr|_dl_find_object|strerrordesc_np)$'
}

dlsym_jumps() { # the stub must reach the real one by a jump, or that would take us for its caller
  local code
  code=$(objdump -d --no-show-raw-insn --disassemble=dlsym "$library")
  grep -qE '\b(jmp +\*|br +x)' <<<"$code" && [[ $(grep -cE '\b(call|bl)\b' <<<"$code") == 1 ]]
}

runs_bound_now() { [[ $(LD_BIND_NOW=1 LD_PRELOAD=$(realpath "$library") sh -c 'echo well' 2>&1) == well ]]; }

# Undefined in all of the C half's objects together, and not on its list; a name on the list that is not wanted any more is one, too, unless the compiler may make calls of it by itself.
imports() {
  local objects wanted listed
  mapfile -t objects < <(objects plain)
  wanted=$(comm -23 <(nm -u "${objects[@]}" | awk 'NF == 2 {print $2}' | sort -u) <(nm --defined-only "${objects[@]}" | awk 'NF == 3 {print $3}' | sort -u))
  listed=$(grep -v '^#' cshim/imports.txt | tr -s ' ' '\n' | sort -u)
  comm -3 <(echo "$wanted") <(echo "$listed") | tr -d '\t' | grep -vxE 'mem(cmp|cpy|move|set)|_GLOBAL_OFFSET_TABLE_|'
}

test_imports() {
  local found
  echo "== imports"
  found=$(imports)
  check "asked of other libraries, or listed and not asked for (cshim/imports.txt): $(tr '\n' ' ' <<<"$found")" test -z "$found"
}

test_library() {
  echo "== library"
  if [[ ! -e $library ]]; then make -s lib || { failed=$((failed + 1)) && return; }; fi
  local expected actual
  expected=$(expected_exports | sort -u)
  actual=$(nm -D --defined-only "$library" | awk '{print $3}' | sort)
  check "it exports its hooks and the tag API, and nothing else: $(diff <(echo "$expected") <(echo "$actual") | grep '^[<>]' | tr '\n' ' ')" test "$expected" = "$actual"
  check "$(wc -l <<<"$expected") exports are too few to believe" test "$(wc -l <<<"$expected")" -gt 40
  check "undefined beyond the C library: $(foreign_symbols | tr '\n' ' ')" test -z "$(foreign_symbols)"
  check "it needs only the C library: $(objdump -p "$library" | awk '/NEEDED/{print $2}' | tr '\n' ' ')" \
    test -z "$(objdump -p "$library" | awk '/NEEDED/{print $2}' | grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so')"
  check "it mentions nvml symbols" test -z "$(nm -D "$library" | grep -i nvml)"
  check "its stack would be executable" test -z "$(readelf -lW "$library" | grep 'GNU_STACK.*RWE')"
  check "it has an initialiser beyond the C constructor" test "$(readelf -SW "$library" | awk '$2 == ".init_array" || $3 == ".init_array" {print}' | wc -l)" = 1
  check "dlsym does not forward by a jump" dlsym_jumps
  check "LD_BIND_NOW=1 breaks it" runs_bound_now
}

# Interpreters from 3.8 on, one per version: python3 itself and those that PYTHONS names; with --all-pythons pyenv's and those that testdata/python/interpreters.py has
# fetched as well.
interpreters() {
  local python version seen=" " more=()
  [[ -z $all_pythons ]] || more=(~/.pyenv/versions/3.*/bin/python3 "${XDG_CACHE_HOME:-$HOME/.cache}"/memtrace/interpreters/3.*/usr/bin/python3.*[0-9])
  for python in $(command -v python3) ${PYTHONS//:/ } "${more[@]}"; do
    version=$("$python" -c 'import ctypes, sys; print("%d.%d.%d" % sys.version_info[:3] if sys.version_info >= (3, 8) else "")' 2>/dev/null) || continue
    [[ -z $version || $seen == *" $version "* ]] && continue
    seen+="$version "
    echo "$python"
  done
}

# loads PYTHON LIBRARY PRELOAD: whether the interpreter, which may have a C library of its own, runs what is built here
loads() {
  LD_PRELOAD=$3 ASAN_OPTIONS=detect_leaks=0 "$1" -c pass 2>/dev/null || return
  ! LD_PRELOAD=$3 ASAN_OPTIONS=detect_leaks=0 "$1" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$2" 2>&1 | grep -q "version .GLIBC_"
}

# walk_with VARIANT PYTHON PRELOAD: what the walker finds against what that interpreter says
walk_with() {
  local log=$out/$1/walk.log
  if ! loads "$2" "$out/$1/libpywalk.so" "$3"; then
    echo "skipped: $2 runs on a C library that is older than what is built here"
    return
  fi
  LD_PRELOAD=$3 ASAN_OPTIONS=detect_leaks=0 timeout "$hung" "$2" -W ignore cshim/ctest/pywalk.py "$out/$1/libpywalk.so" 2>&1 | tee "$log"
  note "${PIPESTATUS[0]}" "$log"
}

# adapters_with VARIANT PYTHON PRELOAD: how the adapters' mechanism does in that interpreter
adapters_with() {
  local log=$out/$1/adapters.log
  loads "$2" "$out/$1/libpyadapter.so" "$3" || return # said already
  LD_PRELOAD=$3 ASAN_OPTIONS=detect_leaks=0 timeout "$hung" "$2" -W ignore cshim/ctest/pyadapter.py "$out/$1/libpyadapter.so" 2>&1 | tee "$log"
  note "${PIPESTATUS[0]}" "$log"
}

build_walker() { # build_walker SET FOLDER
  local set=$1 objects
  mapfile -t objects < <(objects "$set" $apart)
  $cc $flags ${flags_of[$set]} -fPIC -shared cshim/ctest/pywalk.c "${objects[@]}" -o "$2/libpywalk.so" -ldl -lpthread || return
  mapfile -t objects < <(objects "$set" $apart scripts) # the test has scripts of its own
  $cc $flags ${flags_of[$set]} -fPIC -shared cshim/ctest/pyadapter.c "${objects[@]}" -o "$2/libpyadapter.so" -ldl -lpthread
}

test_headers_of() { # test_headers_of PYTHON: the layouts against the headers that come with it, if any do
  local include log=$out/pylayout.log
  include=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [[ -e $include/internal/pycore_pystate.h ]] || return
  check "the layouts compile with $include" $cc -std=gnu11 -w -I"$include" -I"$include/internal" -Icshim cshim/ctest/pylayout_test.c cshim/python/pylayout.c -o "$out/pylayout_test"
  "$out/pylayout_test" 2>&1 | tee "$log"
  note "${PIPESTATUS[0]}" "$log"
}

test_python() { # test_python VARIANT SET PRELOAD: in one interpreter after the other, for they share the variant's folder
  local variant=$1 set=$2 preload=$3 python
  echo "== $variant"
  mkdir -p "$out/$variant"
  check "the walker compiles" build_walker "$set" "$out/$variant"
  for python in $(interpreters); do
    walk_with "$variant" "$python" "$preload"
    adapters_with "$variant" "$python" "$preload"
    [[ -n $preload ]] || test_headers_of "$python"
  done
}

test_rows() {
  local libraries
  [[ $(uname -m) == x86_64 ]] || return
  echo "== rows"
  mapfile -t libraries < <(ldd "$BASH" | awk '$3 ~ /^\//{print $3}')
  check "the unwinder's rows differ from readelf's" scripts/check-rows.py --every 5 "${libraries[@]}"
}

test_null() {
  local target log status
  echo "== null GPU"
  mkdir -p "$out"
  for target in "driver.mk test-nullcuda-driver" "cudart.mk test-nullcuda-runtime"; do
    log=$out/${target##* }.log
    make -s -f "testdata/nullcuda/${target% *}" "${target#* }" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    while read -r p _ f _; do
      passed=$((passed + p)) failed=$((failed + ${f:-0}))
    done < <(grep -Eo '[0-9]+ passed, [0-9]+ failed' "$log" | tr -d ,)
    if [[ $status != 0 ]] && ! grep -qE '[1-9][0-9]* failed' "$log"; then failed=$((failed + 1)); fi
  done
}

plain="ring dict tag pool nvtx nvtxmark nvml output config clock region cgroup array unwind capture cfi stackmap symbol pystack splitranges backward allocator growth namerow table"
sanitized=${plain/ splitranges/}
[[ ${TIER:-all} != core ]] || plain=splitranges
threads="ring dict tag pool nvtx nvtxmark clock unwind capture pystack"

# any NAMES: whether one of them is wanted
any() {
  local name
  for name in $1; do wanted "$name" && return; done
  return 1
}

rm -rf "${out:?}/groups"
mkdir -p "$out/groups"
SECONDS=0
compiled=" "
for set in plain sanitized threads; do
  [[ $set != threads || ${TIER:-all} != core ]] || continue # as with Go's race detector
  declare -n tests=$set
  also=
  [[ $set == threads ]] || also=" python"
  [[ $set != plain ]] || also+=" imports"
  any "$tests$also" || continue
  if compile "$set"; then compiled+="$set "; else failed=$((failed + 1)) && echo "failed: $set does not compile" >&2; fi
done
[[ $compiled == " " ]] || echo "compiled$compiled in $SECONDS s"

made() { [[ $compiled == *" $1 "* ]]; }
# The long ones come first, so that none of them runs alone at the end.
wanted null && group null test_null
[[ ${TIER:-all} == core ]] || { made sanitized && wanted python && group python-sanitized test_python python-sanitized sanitized "$($cc -print-file-name=libasan.so)"; }
made sanitized && any "$sanitized" && group sanitized run_tests sanitized "$sanitized"
made threads && any "$threads" && group threads run_tests threads "$threads"
made plain && wanted python && group python test_python python plain ""
made plain && any "$plain" && group plain run_tests plain "$plain"
wanted rows && group rows test_rows
wanted header && group header test_header
made plain && wanted imports && group imports test_imports
wanted library && group library test_library
total
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
