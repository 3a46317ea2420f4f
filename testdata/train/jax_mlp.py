"""Trains a small network with JAX: jitted steps, Adam written out, gradients by transformation."""
import functools

import jax
import jax.numpy as jnp

import oracle

WIDTHS = (256, 512, 512, 10)


def counters():
    """{device: its allocator's counters where it has some, and the buffers of all live arrays}."""
    made = {}
    for index, device in enumerate(jax.local_devices()):
        shards = [shard.data for array in jax.live_arrays() for shard in array.addressable_shards if shard.device == device]
        buffers = {shard.unsafe_buffer_pointer(): shard.nbytes for shard in shards if shard.nbytes}
        made[str(index)] = {**(device.memory_stats() or {}), "buffers": [[address, size] for address, size in buffers.items()]}
    return made


def synchronize():
    for array in jax.live_arrays():
        array.block_until_ready()


def forward(weights, x):
    for w, b in weights[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = weights[-1]
    return x @ w + b


def loss(weights, x, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(forward(weights, x)) * jax.nn.one_hot(labels, WIDTHS[-1]), axis=-1))


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_step(weights, moments, x, labels):
    value, gradients = jax.value_and_grad(loss)(weights, x, labels)

    def adam(w, moment, g):
        mean, square = 0.9 * moment[0] + 0.1 * g, 0.999 * moment[1] + 0.001 * g * g
        return w - 1e-3 * mean / (jnp.sqrt(square) + 1e-8), (mean, square)

    leaves, shape = jax.tree.flatten(weights)
    both = [adam(*row) for row in zip(leaves, moments, jax.tree.leaves(gradients))]
    return jax.tree.unflatten(shape, [w for w, _ in both]), [m for _, m in both], value


def initial():
    keys = jax.random.split(jax.random.PRNGKey(0), len(WIDTHS) - 1)
    weights = [(jax.random.normal(key, (a, b)) * 0.02, jnp.zeros(b)) for key, a, b in zip(keys, WIDTHS, WIDTHS[1:])]
    return weights, [(jnp.zeros_like(leaf), jnp.zeros_like(leaf)) for leaf in jax.tree.leaves(weights)]


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--batch", type=oracle.positive, default=64)
    parser.add_argument("--too-large", type=oracle.positive, metavar="BYTES", help="at the end ask for an array of as many bytes, which must fail")
    options = parser.parse_args()
    weights, moments = initial()
    value = None
    for _ in range(options.steps):
        oracle.step()
        x = jax.device_put(jnp.ones((options.batch, WIDTHS[0])))
        labels = jnp.zeros(options.batch, dtype=jnp.int32)
        weights, moments, value = train_step(weights, moments, x, labels)
    if options.too_large:
        try:
            jax.device_put(jnp.zeros(options.too_large, dtype=jnp.uint8)).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            print("refused:", str(error).split(":")[0])
    print(f"{options.steps} steps, {len(jax.live_arrays())} arrays, loss is a {value.dtype}")
    oracle.finish(options, weights, moments, synchronize=synchronize, counters=counters)


if __name__ == "__main__":
    main()
