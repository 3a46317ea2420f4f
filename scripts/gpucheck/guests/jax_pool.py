# SPDX-License-Identifier: Apache-2.0
"""Lets JAX make its memory pool and prints the bytes that are in use there."""

import json

import jax
import jax.numpy as jnp
import memtrace

kept = jnp.ones((1024, 1024)).block_until_ready()
memtrace.mark("pool")
print(json.dumps({"pool": jax.local_devices()[0].memory_stats()["bytes_in_use"]}))
