/* Memory of CUDA graphs: nodes that allocate, streams that are captured into graphs, launches that bring the memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Captures under way in the process. Usually none, which spares all queries. */
extern uint32_t mt_graph_capturing;

bool mt_graph_stream_captured(uint64_t stream, uint16_t api, uint64_t *graph);

/* Whether a call of the hook api on the stream was captured as a node of a graph, and of which graph, 0 where the
 * driver does not report it. Queries the driver only while something is being captured. */
static inline bool mt_graph_captures(uint64_t stream, uint16_t api, uint64_t *graph) {
  return __atomic_load_n(&mt_graph_capturing, __ATOMIC_RELAXED) && mt_graph_stream_captured(stream, api, graph);
}

/* Whether a graph of this process allocates memory. */
bool mt_graph_has_memory(void);
