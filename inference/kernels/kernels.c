/* Decode on a processor: weights are read once, for 1 to 16 rows, by every thread of torch's own pool.

   What is computed is float32, whatever weights, keys and values are kept in (kernels_kept.h). A step
   is cut into phases (project, attend, project back, gate, down) and a phase into chunks that threads
   claim one after another. A phase ends when its chunks are done, not when every thread has arrived,
   so a thread that the system has put aside holds up nothing but the chunk it claimed. Callers check sizes, dtypes and strides: fused_layers.py, install.py and
   description.py beside this file. What abi.py there repeats of it is exported at its end. */

#include <omp.h>
#include <sched.h>

#include "kernels_attention.h"
#include "kernels_choice.h"
#include "kernels_stream.h"

#define CHUNK_BYTES 98304 /* weights that a thread claims at a time */
#define MOST_PIECE 128    /* MLP columns among them */
#define SPINS 4096        /* polls before the core is offered to someone else */
#define PHASES 5
#ifndef MOST_ROWS
#define MOST_ROWS 16
#endif

typedef struct {
    int32_t claimed;
    char gap[60]; /* the two counters are on cache lines of their own */
    int32_t done;
    char gap2[60];
} Counter;

typedef struct {
    int64_t hidden, heads, kv_heads, head_dim, intermediate;
    float eps, scale;
    const kept *norm;
    const weight *q, *k, *v;
    const kept *q_bias, *k_bias, *v_bias;
    const weight *o;
    const kept *o_bias, *mlp_norm;
    const weight *gate, *up, *down;
} Layer;

typedef struct {
    kept *keys, *values;                                    /* [row, kv_head, token, head_dim] */
    int64_t key_row, key_head, value_row, value_head;       /* strides in numbers */
    int64_t tokens;                                         /* attended, the one fed included */
    const uint8_t *mask;                                    /* [row, token], 0 hides; or NULL */
    int64_t mask_row;
} Stored;

typedef struct {
    int64_t rows, layers;
    const float *input;                /* [row, hidden] */
    float *output;                     /* [row, hidden] */
    const float *cosines, *sines;      /* [row, head_dim] */
    int64_t angle_row;                 /* 0 where all rows share their position */
    float *scratch;
    Counter *counters;                 /* [layer, phase] */
    double *part_s;                    /* [linear, attention], seconds added to; or NULL */
} Step;

INLINE int32_t claim(Counter *counter) {
    return __atomic_fetch_add(&counter->claimed, 1, __ATOMIC_RELAXED);
}

INLINE void finish(Counter *counter) { __atomic_fetch_add(&counter->done, 1, __ATOMIC_RELEASE); }

static void await(Counter *counter, int64_t chunks) {
    for (int64_t spins = 1; __atomic_load_n(&counter->done, __ATOMIC_ACQUIRE) < chunks; spins++) {
        _mm_pause();
        if (spins % SPINS == 0) sched_yield();
    }
}

INLINE int64_t rows_per_chunk(int64_t width) {
    int64_t rows = CHUNK_BYTES / ((int64_t)sizeof(weight) * row_size(width)) / ROW_BLOCK * ROW_BLOCK;
    return rows < ROW_BLOCK ? ROW_BLOCK : rows;
}

INLINE int64_t pieces(int64_t all_of_it, int64_t piece) { return (all_of_it + piece - 1) / piece; }

/* What threads share between phases; offsets into the scratch. */
typedef struct {
    float *state, *middle, *query, *key, *value, *attended, *gated, *partial, *own;
    int32_t *waiting;
} Shared;

static int64_t partial_floats(const Layer *layer, int64_t rows, int64_t tokens) {
    return rows * layer->heads * pieces(tokens, KV_CHUNK) * (layer->head_dim + 2);
}

static int64_t shared_out(const Layer *layer, int64_t rows, int64_t tokens, int64_t threads,
                          float *scratch, Shared *shared) {
    int64_t q_width = layer->heads * layer->head_dim, kv_width = layer->kv_heads * layer->head_dim;
    float *next = scratch;
#define TAKE(name, floats) (shared->name = next, next += ((floats) + 15) / 16 * 16)
    TAKE(state, rows * layer->hidden);
    TAKE(middle, rows * layer->hidden);
    TAKE(query, rows * q_width);
    TAKE(key, rows * kv_width);
    TAKE(value, rows * kv_width);
    TAKE(attended, rows * q_width);
    TAKE(gated, rows * layer->intermediate);
    TAKE(partial, partial_floats(layer, rows, tokens));
    TAKE(own, threads * rows * layer->hidden);
#undef TAKE
    shared->waiting = (int32_t *)next;
    next += (rows * layer->kv_heads + 15) / 16 * 16;
    return next - scratch;
}

int64_t scratch_floats(const Layer *layer, int64_t rows, int64_t tokens) {
    Shared shared;
    return shared_out(layer, rows, tokens, omp_get_max_threads(), NULL, &shared);
}

/* Put columns first..last of the new tokens' values into the cache. */
INLINE void keep_values(const Layer *layer, const Stored *stored, const Shared *shared, int64_t rows,
                        int64_t first, int64_t last) {
    int64_t dim = layer->head_dim, token = (stored->tokens - 1) * dim;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = first; column < last; column++)
            stored->values[row * stored->value_row + column / dim * stored->value_head + token +
                           column % dim] =
                to_kept(shared->value[row * layer->kv_heads * dim + column]);
}

/* Queries, keys and values of the tokens fed; values go straight to the cache. */
static void project_in(const Layer *layer, const Stored *stored, const Step *step, Counter *counter,
                       const Shared *shared, float *own) {
    int64_t q_width = layer->heads * layer->head_dim, kv_width = layer->kv_heads * layer->head_dim;
    int64_t piece = rows_per_chunk(layer->hidden), width = layer->hidden, rows = step->rows;
    int64_t q_chunks = pieces(q_width, piece), kv_chunks = pieces(kv_width, piece);
    int64_t chunks = q_chunks + 2 * kv_chunks;
    int is_ready = 0;
    for (int64_t chunk; (chunk = claim(counter)) < chunks; finish(counter)) {
        if (!is_ready) normalise(shared->state, layer->norm, layer->eps, rows, width, own);
        is_ready = 1;
        if (chunk < q_chunks) {
            int64_t first = chunk * piece, last = at_most(first + piece, q_width);
            project(layer->q, layer->q_bias, NULL, own, width, rows, first, last, shared->query,
                    q_width);
        } else if (chunk < q_chunks + kv_chunks) {
            int64_t first = (chunk - q_chunks) * piece, last = at_most(first + piece, kv_width);
            project(layer->k, layer->k_bias, NULL, own, width, rows, first, last, shared->key,
                    kv_width);
        } else {
            int64_t first = (chunk - q_chunks - kv_chunks) * piece;
            int64_t last = at_most(first + piece, kv_width);
            project(layer->v, layer->v_bias, NULL, own, width, rows, first, last, shared->value,
                    kv_width);
            keep_values(layer, stored, shared, rows, first, last);
        }
    }
    await(counter, chunks);
}

/* Attention of one row and key/value head over one chunk of the cache. */
static void attend_chunk(const Layer *layer, const Stored *stored, const Step *step,
                         const Shared *shared, int64_t task, int64_t chunks) {
    int64_t chunk = task % chunks, head = task / chunks % layer->kv_heads;
    int64_t row = task / chunks / layer->kv_heads, dim = layer->head_dim;
    int64_t group = layer->heads / layer->kv_heads, first = chunk * KV_CHUNK;
    int64_t tokens = at_most(stored->tokens - first, KV_CHUNK), stride = dim + 2;
    const float *cosines = step->cosines + row * step->angle_row;
    const float *sines = step->sines + row * step->angle_row;
    float query[MOST_GROUP * MOST_HEAD_DIM], scores[MOST_GROUP][KV_CHUNK];
    kept *keys = stored->keys + row * stored->key_row + head * stored->key_head + first * dim;
    const kept *values =
        stored->values + row * stored->value_row + head * stored->value_head + first * dim;
    int64_t first_head = row * layer->heads + head * group;
    for (int64_t g = 0; g < group; g++)
        rotate(shared->query + (first_head + g) * dim, cosines, sines, dim, layer->scale,
               query + g * dim);
    if (chunk == chunks - 1) {
        float turned[MOST_HEAD_DIM];
        rotate(shared->key + (row * layer->kv_heads + head) * dim, cosines, sines, dim, 1.0f, turned);
        for (int64_t i = 0; i < dim; i++) keys[(tokens - 1) * dim + i] = to_kept(turned[i]);
    }
    score(query, keys, values, dim, group, tokens, scores);
    float *partial = shared->partial + (first_head * chunks + chunk) * stride;
    for (int64_t g = 0; g < group; g++) {
        if (stored->mask) {
            const uint8_t *seen = stored->mask + row * stored->mask_row + first;
            for (int64_t token = 0; token < tokens; token++)
                if (!seen[token]) scores[g][token] = HIDDEN_SCORE;
        }
        weigh(scores[g], tokens, partial + g * chunks * stride + dim);
    }
    mix(values, scores, dim, group, tokens, partial, chunks * stride);
    int32_t *waiting = shared->waiting + row * layer->kv_heads + head;
    if (__atomic_add_fetch(waiting, 1, __ATOMIC_ACQ_REL) % chunks) return;
    *waiting = 0;
    for (int64_t g = 0; g < group; g++)
        join(shared->partial + (first_head + g) * chunks * stride, chunks, stride, dim,
             shared->attended + (first_head + g) * dim);
}

static void attend(const Layer *layer, const Stored *stored, const Step *step, Counter *counter,
                   const Shared *shared) {
    int64_t chunks = pieces(stored->tokens, KV_CHUNK);
    int64_t tasks = step->rows * layer->kv_heads * chunks;
    for (int64_t task; (task = claim(counter)) < tasks; finish(counter))
        attend_chunk(layer, stored, step, shared, task, chunks);
    await(counter, tasks);
}

/* output = input times weights, plus what flows past. */
static void project_back(const weight *weights, const kept *bias, const float *input, int64_t width,
                         const float *past, int64_t out_width, int64_t rows, float *output,
                         Counter *counter) {
    int64_t piece = rows_per_chunk(width), chunks = pieces(out_width, piece);
    for (int64_t chunk; (chunk = claim(counter)) < chunks; finish(counter)) {
        int64_t first = chunk * piece, last = at_most(first + piece, out_width);
        project(weights, bias, past, input, width, rows, first, last, output, out_width);
    }
    await(counter, chunks);
}

/* gated = silu(gate) * up of the normalised state. */
static void gate_up(const Layer *layer, int64_t rows, Counter *counter, const Shared *shared,
                    float *own) {
    int64_t width = layer->hidden, wide = layer->intermediate;
    int64_t piece = (rows_per_chunk(2 * width) + LANES - 1) / LANES * LANES;
    if (piece > MOST_PIECE) piece = MOST_PIECE;
    int64_t chunks = pieces(wide, piece);
    float up[MOST_ROWS * MOST_PIECE]; /* [row, piece] */
    int is_ready = 0;
    for (int64_t chunk; (chunk = claim(counter)) < chunks; finish(counter)) {
        int64_t first = chunk * piece, columns = at_most(piece, wide - first);
        if (!is_ready) normalise(shared->middle, layer->mlp_norm, layer->eps, rows, width, own);
        is_ready = 1;
        project(layer->gate, NULL, NULL, own, width, rows, first, first + columns, shared->gated,
                wide);
        project(weight_row(layer->up, first, width), NULL, NULL, own, width, rows, 0, columns, up, piece);
        for (int64_t row = 0; row < rows; row++)
            for (int64_t i = 0; i < columns; i += LANES) {
                float *place = shared->gated + row * wide + first + i;
                lanes gate = load(place);
                store(place, gate / (all(1.0f) + exponential(-gate)) * load(up + row * piece + i));
            }
    }
    await(counter, chunks);
}

/* Every phase ends when all threads are done with it, so one thread's time is the phase's. */
static void run_layers(const Layer *layers, const Stored *stored, const Step *step,
                       const Shared *shared, float *own) {
    int is_timed = step->part_s != NULL && omp_get_thread_num() == 0;
    double begun = 0, projected = 0, attended = 0;
    for (int64_t index = 0; index < step->layers; index++) {
        const Layer *layer = layers + index;
        Counter *counter = step->counters + index * PHASES;
        int64_t q_width = layer->heads * layer->head_dim, rows = step->rows;
        float *output = index == step->layers - 1 ? step->output : shared->state;
        if (is_timed) begun = omp_get_wtime();
        project_in(layer, stored + index, step, counter, shared, own);
        if (is_timed) projected = omp_get_wtime();
        attend(layer, stored + index, step, counter + 1, shared);
        if (is_timed) attended = omp_get_wtime();
        project_back(layer->o, layer->o_bias, shared->attended, q_width, shared->state,
                     layer->hidden, rows, shared->middle, counter + 2);
        gate_up(layer, rows, counter + 3, shared, own);
        project_back(layer->down, NULL, shared->gated, layer->intermediate, shared->middle,
                     layer->hidden, rows, output, counter + 4);
        if (is_timed) {
            step->part_s[0] += projected - begun + omp_get_wtime() - attended;
            step->part_s[1] += attended - projected;
        }
    }
}

/* Run consecutive layers of one shape on one new token a row. */
void decode_layers(const Layer *layers, const Stored *stored, const Step *step) {
    Shared shared;
    int64_t threads = omp_get_max_threads(), rows = step->rows, hidden = layers->hidden;
    int64_t most = 1;
    for (int64_t i = 0; i < step->layers; i++)
        if (stored[i].tokens > most) most = stored[i].tokens;
    shared_out(layers, rows, most, threads, step->scratch, &shared);
    memcpy(shared.state, step->input, rows * hidden * sizeof(float));
    memset(shared.waiting, 0, rows * layers->kv_heads * sizeof(int32_t));
    memset(step->counters, 0, step->layers * PHASES * sizeof(Counter));
#pragma omp parallel
    run_layers(layers, stored, step, &shared, shared.own + omp_get_thread_num() * rows * hidden);
}

/* output [row, out_width] = input [row, width] times weights [out_width, width], plus bias. */
void linear(const weight *weights, const kept *bias, const float *input, float *output,
            int64_t rows, int64_t width, int64_t out_width) {
    Counter counter;
    memset(&counter, 0, sizeof counter);
#pragma omp parallel
    project_back(weights, bias, input, width, NULL, out_width, rows, output, &counter);
}

#if NUMBER_FORMAT >= FORMAT_Q8_0
/* output [row, width] = the numbers of weights [row, width]. */
void widen(const weight *weights, int64_t rows, int64_t width, float *output) {
#pragma omp parallel for
    for (int64_t row = 0; row < rows; row++) {
        const weight *block = weight_row(weights, row, width);
        for (int64_t i = 0; i < width; i += BLOCK, block += BLOCK_BYTES) {
            lanes numbers[PARTS];
            load_block(block, numbers);
            for (int part = 0; part < PARTS; part++)
                store(output + row * width + i + part * LANES, numbers[part]);
        }
    }
}
#endif

/* The sum of the floats of a number of whole chunks, claimed by threads as weights are. */
float read_streams(const float *data, int64_t chunks) {
    Counter counter;
    float sum = 0.0f;
    memset(&counter, 0, sizeof counter);
#pragma omp parallel reduction(+ : sum)
    for (int64_t chunk; (chunk = claim(&counter)) < chunks;)
        sum += sum_of_streams(data + chunk * (CHUNK_BYTES / 4), CHUNK_BYTES / 4);
    return sum;
}

/* Of each row of scores [row, width]: its logarithm of the sum of exponentials and its entropy in
   totals [row, 2], and its highest scores, best first, in best and places [row, count]. */
void describe(const float *scores, int64_t rows, int64_t width, int64_t count, float *totals,
              float *best, int64_t *places) {
    for (int64_t row = 0; row < rows; row++) {
        const float *own = scores + row * width;
        highest(own, width, count, best + row * count, places + row * count);
        sum_up(own, width, best[row * count], totals + row * 2);
    }
}

int64_t counter_bytes(int64_t layers) { return layers * PHASES * (int64_t)sizeof(Counter); }

int64_t lane_count(void) { return LANES; }

int64_t pool_threads(void) { return omp_get_max_threads(); }

/* For the calling thread only, as in torch's own call. */
void set_pool_threads(int64_t threads) { omp_set_num_threads((int)threads); }

/* Structures and limits as compiled, for whoever calls with their own idea of them. */
const int64_t layer_bytes = sizeof(Layer), stored_bytes = sizeof(Stored), step_bytes = sizeof(Step);
const int64_t most_rows = MOST_ROWS, most_group = MOST_GROUP, most_head_dim = MOST_HEAD_DIM;
const int64_t chunk_bytes = CHUNK_BYTES, number_format = NUMBER_FORMAT;
