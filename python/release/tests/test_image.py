# SPDX-License-Identifier: Apache-2.0
"""The recipe of the image for an init container, and the pod and the job that use it: what they copy is in the wheel, and a program is recorded with no more than that."""

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from conftest import ROOT, clean_environment, find_wheel, highest_total, output, unpack

RECIPE = ROOT / "packaging/Containerfile"
POD = ROOT / "packaging/pod.yaml"
JOB = ROOT / "docs/at-scale/convert.yaml"
BUSYBOX = Path("/bin/busybox")


def instructions():
    return [line.split(" ", 1) for line in RECIPE.read_text(encoding="utf-8").splitlines() if re.match("[A-Z]", line)]


def copies():
    """Where the recipe puts the files of its context, by name."""
    places = {}
    for verb, words in instructions():
        if verb == "COPY":
            *names, folder = [word for word in words.split() if not word.startswith("--")]
            places.update({name: folder + name for name in names})
    return places


def command():
    return json.loads(next(words for verb, words in instructions() if verb == "CMD"))


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pod():
    return load(POD)


def mounts(container):
    """Where a container sees each volume."""
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.fixture(name="wheel", scope="module")
def unpacked_wheel(tmp_path_factory):
    return unpack(find_wheel(platform.machine()), tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("path", [POD, JOB], ids=lambda path: path.stem)
def test_resource_is_valid(path):
    """Kubernetes' own schema takes it, and its pods mount only volumes that they have."""
    resource = load(path)
    kubernetes_validate.validate(resource, "1.31", strict=True)
    spec = resource["spec"].get("template", resource)["spec"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {name for container in spec["initContainers"] + spec["containers"] for name in mounts(container)} == volumes


def test_job_converts_each_trace_once(tmp_path):
    """Pod N converts the trace N; those beyond the last trace have nothing to do."""
    container, = load(JOB)["spec"]["template"]["spec"]["containers"]
    (tmp_path / "traces").mkdir()
    for name in "ab":
        (tmp_path / f"traces/{name}.bin").touch()
    seen = mounts(container)
    script = container["args"][0].replace(f"{seen['data']}/", f"{tmp_path}/").replace(f"{seen['memtrace']}/memtrace", "echo")
    done = [output(*container["command"], script, env=clean_environment(JOB_COMPLETION_INDEX=n, RUN="monday")).split() for n in range(3)]
    common = ["--quiet", "export", "parquet", "--force", "--run", "monday", "-o", f"{tmp_path}/tables"]
    assert done == [[*common, f"{tmp_path}/traces/a.bin"], [*common, f"{tmp_path}/traces/b.bin"], []]


def test_recipe_copies_the_wheel(wheel, tmp_path):
    """The recipe's steps, done by hand, put two files of the wheel into the volume; with the pod's environment they record a program, and the report names its pod."""
    places = copies()
    sources = {name: next(path for path in (wheel / "memtrace/_bin" / name, ROOT / name) if path.is_file()) for name in places}
    root = tmp_path / "image"
    for name, place in places.items():
        (root / place.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(sources[name], root / place.lstrip("/"))
    program, *copied, target = command()
    spec = pod()["spec"]
    init, train = spec["initContainers"][0], spec["containers"][0]
    assert program == "cp" and set(copied) <= set(places.values()) and target.rstrip("/") == mounts(init)["memtrace"]
    volume, traces = tmp_path / "volume", tmp_path / "traces"
    volume.mkdir()
    traces.mkdir()
    output("cp", *(root / path.lstrip("/") for path in copied), volume)
    assert sorted(path.name for path in volume.iterdir()) == ["libmemtrace.so", "memtrace"]
    assert all(os.access(path, os.X_OK) for path in volume.iterdir())
    record(wheel, train, volume, traces, tmp_path)


def record(wheel, container, volume, traces, folder):
    """Runs the demo's program as a container with such an environment would run it, and reads its trace with the volume's command."""
    seen = mounts(container)
    variables = {"POD_NAME": "train-0"}
    for variable in container["env"]:
        if "value" in variable:
            variables[variable["name"]] = variable["value"].replace(seen["memtrace"], str(volume)).replace(seen["traces"], str(traces))
    files = wheel / "memtrace/_bin"
    output(files / "demo/train", cwd=folder, env=clean_environment(LD_LIBRARY_PATH=files / "nullgpu", NULLCUDA_SHARED="none", NULLCUDA_LOG=folder / "null.log", **variables))
    trace, = traces.iterdir()
    report = json.loads(output(volume / "memtrace", "report", "--json", trace))
    assert (report["driver"]["peak_bytes"], report["driver"]["live_bytes"]) == highest_total(folder / "null.log")
    assert report["health"]["complete"] and report["process"]["pod"] == "train-0"


@pytest.mark.skipif(not (shutil.which("buildah") and BUSYBOX.exists() and os.geteuid() == 0), reason="no buildah, no static busybox, or not root")
def test_image(wheel, tmp_path):
    """The image is built by a real engine, on a base of no more than cp, and run as in the pod: it fills the volume as nobody."""
    conf = tmp_path / "storage.conf"
    conf.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/store"\nrunroot = "{tmp_path}/run"\n', encoding="utf-8")
    environment = clean_environment(CONTAINERS_STORAGE_CONF=conf, BUILDAH_ISOLATION="chroot", ENGINE="buildah", BASE="localhost/base", BUILDFLAGS="--pull-never")

    def buildah(*words):
        return output("buildah", *words, env=environment).strip()

    base = tmp_path / "base"
    (base / "bin").mkdir(parents=True)
    (base / "tmp").mkdir()
    shutil.copy(BUSYBOX, base / "bin/busybox")
    (base / "bin/cp").symlink_to("busybox")
    scratch = buildah("from", "scratch")
    buildah("copy", "-q", scratch, base, "/")
    buildah("commit", "-q", scratch, "localhost/base")
    output(ROOT / "scripts/image.sh", find_wheel(platform.machine()), "localhost/memtrace-gpu:test", env=environment)
    container = buildah("from", "--pull-never", "localhost/memtrace-gpu:test")
    volume, traces = tmp_path / "volume", tmp_path / "traces"
    volume.mkdir()
    volume.chmod(0o777)
    traces.mkdir()
    words = json.loads(buildah("inspect", container))["OCIv1"]["config"]["Cmd"]
    assert words == command()
    where = mounts(pod()["spec"]["initContainers"][0])["memtrace"]
    buildah("run", "--volume", f"{volume}:{where}", container, "--", *words)
    assert {path.name: path.stat().st_uid for path in volume.iterdir()} == {"libmemtrace.so": 65534, "memtrace": 65534}
    record(wheel, pod()["spec"]["containers"][0], volume, traces, tmp_path)


def test_script_says_what_is_wrong(tmp_path):
    """No wheel, or no engine: one sentence."""
    done = subprocess.run([ROOT / "scripts/image.sh", tmp_path / "none.whl", "x"], stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert done.returncode == 2 and "make wheel" in done.stderr
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    done = subprocess.run(["bash", ROOT / "scripts/image.sh", find_wheel(platform.machine()), "x"], stderr=subprocess.PIPE, encoding="utf-8", check=False, env={"PATH": str(tools)})
    assert done.returncode == 1 and "no buildah, podman or docker" in done.stderr
