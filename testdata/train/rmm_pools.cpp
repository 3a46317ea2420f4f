// RMM's resources as programs use them: rmm_pools RESOURCE STEPS FILE, where RESOURCE is cuda, async, managed, pool,
// arena or binning. At the mark "stats", with everything still held, writes as JSON what the program's buffers hold of
// the resource (`used`) and what the resource holds of the device (`held`), both counted by RMM's own adaptor.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/device_buffer.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/binning_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/managed_memory_resource.hpp>
#include <rmm/mr/device/per_device_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>
#include <rmm/mr/device/statistics_resource_adaptor.hpp>

#include "memtrace.h"

using resource = rmm::mr::device_memory_resource;
using counted = rmm::mr::statistics_resource_adaptor<resource>;

constexpr std::size_t pool_bytes = std::size_t{16} << 20;

// The resource of that name, which takes what it needs from `below`. Nothing if it is `below` itself.
static std::unique_ptr<resource> above(const std::string &name, counted *below) {
  if (name == "pool") return std::make_unique<rmm::mr::pool_memory_resource<resource>>(below, pool_bytes);
  if (name == "arena") return std::make_unique<rmm::mr::arena_memory_resource<resource>>(below, pool_bytes);
  if (name == "binning") return std::make_unique<rmm::mr::binning_memory_resource<resource>>(below, 12, 16);
  return nullptr;
}

static std::unique_ptr<resource> lowest(const std::string &name) {
  if (name == "async") return std::make_unique<rmm::mr::cuda_async_memory_resource>(pool_bytes);
  if (name == "managed") return std::make_unique<rmm::mr::managed_memory_resource>();
  return std::make_unique<rmm::mr::cuda_memory_resource>();
}

static void work(int steps, std::vector<rmm::device_buffer> &kept, std::vector<rmm::device_uvector<double>> &columns) {
  const auto stream = rmm::cuda_stream_default;
  for (int i = 0; i < steps; i++) {
    memtrace_step(i);
    memtrace_tag_push("table");
    columns.emplace_back(100'000, stream);
    memtrace_tag_pop();
    kept.emplace_back(3000 + 1000 * i, stream);
    rmm::device_buffer dropped(2'000'000, stream);
  }
}

int main(int count, char **words) {
  if (count != 4) return std::fprintf(stderr, "usage: rmm_pools RESOURCE STEPS FILE\n"), 2;
  const auto bottom = lowest(words[1]);
  counted below(bottom.get());
  const auto top = above(words[1], &below);
  counted used(top ? top.get() : &below);
  rmm::mr::set_current_device_resource(&used);
  {
    std::vector<rmm::device_buffer> kept;
    std::vector<rmm::device_uvector<double>> columns;
    work(std::atoi(words[2]), kept, columns);
    std::FILE *out = std::fopen(words[3], "w");
    if (!out) return std::perror(words[3]), 1;
    memtrace_mark("stats");
    std::fprintf(out, "{\"0\": {\"used\": %lld, \"held\": %lld}}\n",
                 static_cast<long long>(used.get_bytes_counter().value),
                 static_cast<long long>(below.get_bytes_counter().value));
    std::fclose(out);
  }
  rmm::mr::set_current_device_resource(nullptr);
}
