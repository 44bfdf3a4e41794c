// registry: all models by name, and one ready to run: weights, caches and the graph of any of its phases.
// Threads: look-ups from any; a loaded model belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "alloclab/tensor/models/llama.hpp"
#include "alloclab/tensor/models/needs.hpp"
#include "alloclab/tensor/models/whisper.hpp"

namespace alloclab::tensor {

struct model_info {
    std::string_view name;
    std::string_view family;  ///< "llama" or "whisper"
    bool full;                ///< a published shape, without data; else a small twin that computes
    std::variant<const llama_shape*, const whisper_shape*> shape;
};

/// llama then whisper, full ones first. They last as long as the program.
[[nodiscard]] std::span<const model_info> models() noexcept;
/// nullptr for a name that is not listed.
[[nodiscard]] const model_info* find_model(std::string_view name) noexcept;

/// decode: one token; prefill: many at once; encode: whisper's audio side.
enum class phase : std::uint8_t { decode, prefill, encode };
[[nodiscard]] bool has_phase(const model_info& m, phase p) noexcept;

/// Weights and caches of one model and the values of its inputs. Small models get data, filled with seeded noise, the
/// caches too, so that any phase computes at once; full ones are metadata alone.
class loaded_model {
public:
    /// `bytes_behind_tensor` is the room for extras embedded in the weights. Throws context_exhausted.
    explicit loaded_model(const model_info& info, std::uint64_t seed = 1, std::size_t bytes_behind_tensor = 0);
    ~loaded_model();
    loaded_model(const loaded_model&) = delete;
    loaded_model& operator=(const loaded_model&) = delete;

    [[nodiscard]] const model_info& info() const noexcept { return info_; }

    /// Sets phase and batch of what follows, at first a decode in the middle of the context; encode ignores the batch.
    /// The tokens depend on their positions alone. Throws std::invalid_argument for a phase that the model lacks and
    /// shape_error for a batch that its cache cannot hold; nothing has changed then.
    void prepare(phase p, batch b);
    /// What an eval's context must hold; built once per prepare.
    [[nodiscard]] const context_need& need() const noexcept;
    /// Builds the prepared graph, allocating nothing itself; the result is the output (logits, or the encoded audio).
    tensor* build(context& c, graph& g);
    /// Of the graph last built: leaves to be written before it runs. Full models have no values (nullptr).
    [[nodiscard]] std::span<const input_value> inputs() const noexcept;
    /// The model's and the cache's tensors.
    [[nodiscard]] std::span<const leaf> weights() const noexcept;
    [[nodiscard]] std::span<const leaf> caches() const noexcept;
    /// Puts the caches back to what they were when the model was loaded.
    void reset_caches() noexcept;

private:
    struct parts;
    const model_info& info_;
    std::unique_ptr<parts> parts_;
};

/// What one decode in the middle of the context takes: its nodes and tensors.
[[nodiscard]] context_need decode_need(const model_info& m);

}  // namespace alloclab::tensor
