/* The examples of every command. */
#include "harness/base/cli/inside.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *command, *example[FL_EXAMPLES_EACH];
} table[] = {
    {"", {"foldline help compare", "foldline list policies"}},
    {"run",
     {"foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy assure",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy fixed --set sm_mhz=1200 --timeline "
      "timeline.csv"}},
    {"compare",
     {"foldline compare traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --policy utilizscale",
      "foldline synth requests -o asked.csv --rate 2 --seconds 60 && foldline compare "
      "traces/samples/serving/*.serving.csv asked.csv --platform a100 --policy nvboost"}},
    {"list", {"foldline list policies", "foldline list platforms h100"}},
    {"fit policy",
     {"foldline help fit policy odpp", "foldline fit policy sweetspot traces/samples/energyucb-528.pot3d.csv"}},
    {"grid",
     {"foldline grid harness/experiments/first-light.json -o grid.csv",
      "for i in 1 2; do foldline grid harness/experiments/first-light.json -o both.csv --shard $i/2; done && foldline "
      "grid --merge both.csv.shard-*-of-2 -o both.csv"}},
    {"search",
     {"foldline search harness/experiments/first-light.json --objective edp",
      "foldline search harness/experiments/first-light.json --policy assure:theta=0.85/0.9/0.95"}},
    {"regress",
     {"foldline regress harness/experiments/first-light.json --bless -o baseline.json",
      "foldline regress harness/experiments/first-light.json --bless -o strict.json --fail-if 'energy_j>+0.1%' && "
      "foldline regress strict.json"}},
    {"plan",
     {"foldline plan traces/samples/four-stages.pipeline.csv --slowdown 5%",
      "foldline plan traces/samples/four-stages.pipeline.csv --frontier --points 10 -o stages.plan.csv --rows "
      "stages.frontier.csv"}},
    {"tune",
     {"foldline emulate traces/samples/gridpilot/e1.sweep.csv --workload matmul --model fitted --platform v100-300w "
      "--repeat "
      "100 --time virtual --quiet --privileged -- foldline tune --runs 1 -- sleep 3",
      "foldline tune --help"}},
    {"advise",
     {"foldline advise traces/samples/energyucb-528.pot3d.csv --bound 5%",
      "foldline advise traces/samples/mix8.csv --platform rtx4070-laptop --bound 10%"}},
    {"fit", {"foldline help fit device", "foldline fit policy sweetspot traces/samples/energyucb-528.pot3d.csv"}},
    {"verify",
     {"foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --log decisions.csv && foldline "
      "verify "
      "decisions.csv",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy utilizscale --log scaled.csv && "
      "foldline "
      "verify scaled.csv --json"}},
    {"synth",
     {"foldline synth -o demo.csv --kernels 20000 --streams 2 --seed 7",
      "foldline synth -o short.csv --kernels 500 && foldline show short.csv"}},
    {"synth requests",
     {"foldline synth requests -o requests.csv --rate 2 --seconds 300 && foldline show requests.csv --rows 5",
      "foldline synth requests -o bursts.csv --rate 4 --cv 3 --daily 0.8 --day 3600 --seconds 3600 --shared 256"}},
    {"import", {"foldline import traces/samples/mix8.csv", "foldline import traces/samples/mix8.csv -o canonical.csv"}},
    {"list policies", {"foldline list policies", "foldline list policies assure"}},
    {"list platforms", {"foldline list platforms", "foldline list platforms h100"}},
    {"show",
     {"foldline show traces/samples/mix8.csv",
      "foldline compare traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --no-oracle -o shown.csv && "
      "foldline show shown.csv --where 'slowdown<0.05'"}},
    {"plot",
     {"foldline compare traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --policy utilizscale "
      "--no-oracle "
      "-o drawn.csv && foldline plot pareto drawn.csv -o pareto.svg",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --timeline course.csv && "
      "foldline plot "
      "timeline course.csv -o course.svg"}},
    {"live",
     {"foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline live --policy "
      "assure "
      "--for 2s",
      "foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline live --policy "
      "nvboost "
      "--for 1s -o live.csv"}},
    {"record",
     {"foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline record -o "
      "telemetry.csv --for 2s",
      "foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline record -o "
      "program.csv "
      "--every-ms 50 -- sleep 1"}},
    {"doctor",
     {"foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline doctor",
      "foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline doctor --policy "
      "assure"}},
    {"restore", {"foldline restore", "foldline restore --json"}},
    {"emulate",
     {"foldline emulate traces/samples/mix8.csv --platform h100 --time virtual -- foldline doctor",
      "foldline emulate traces/samples/mix8.csv --platform rtx4070-laptop --time virtual -- foldline live --policy "
      "assure "
      "--control --for 2s"}},
    {"report",
     {"foldline compare harness/experiments/first-light.json -o page.csv && foldline report page.csv -o page.html",
      "foldline compare traces/samples/mix8.csv --platform rtx4070-laptop --policy assure --no-oracle -o own.csv && "
      "foldline report own.csv -o own.html --about 'What does Assure save?'"}},
    {"help", {"foldline help compare", "foldline help experiments --schema"}},
    {"fit device",
     {"foldline fit device traces/samples/energyucb-528.pot3d.csv -o device.json",
      "foldline fit device --facts rtx4090 -o device.json"}},
    {"fit workload",
     {"foldline fit workload --device pvc-max1550x6 traces/samples/energyucb-528.pot3d.csv",
      "foldline fit workload traces/samples/energyucb-table1.csv --at sm=1100,1600"}},
    {"fit serving",
     {"cd traces/samples/serving && foldline fit serving --dense rtx4090-llama3.1-8b.dense.csv --per-sequence "
      "rtx4090-llama3.1-8b.per_sequence.csv --attention rtx4090-llama3.1-8b.attention.csv --layers 32 --sm-mhz 2520",
      "cd traces/samples/serving && foldline fit serving rtx4090-llama3.1-8b.serving.csv --json"}},
    {"fit pipeline",
     {"foldline fit pipeline traces/samples/perseus/A100-bert --learn half",
      "foldline fit pipeline traces/samples/perseus/A100-bert -o bert.pipeline.csv"}},
    {"fit logs",
     {"for f in 1005 1500; do foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy fixed --set "
      "sm_mhz=$f "
      "--telemetry mix8@$f.csv; done && foldline fit logs mix8@1005.csv mix8@1500.csv -o measured.csv",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy nvboost --telemetry default.csv && "
      "foldline "
      "fit logs default.csv -o default.sweep.csv --workload mix8"}},
    {"fit power-limit",
     {"foldline fit power-limit traces/samples/gridpilot/step.telemetry.csv.gz -o wall.json",
      "foldline synth -o hot.csv --kernels 1500 --kinds 1 --memory 0 --mean-us 10000 --platform v100-300w && foldline "
      "run hot.csv --platform v100-300w --policy gridpilot --target traces/samples/gridpilot/demand.csv --timeline "
      "limits.csv --every-ms 5 && foldline fit power-limit limits.csv --json"}},
    {"fit sensor",
     {"foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy nvboost --telemetry sensor.csv && "
      "foldline fit "
      "sensor sensor.csv",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy nvboost --telemetry readings.csv && "
      "foldline "
      "fit sensor readings.csv -o sensors.json"}},
    {"fit trace",
     {"foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy fixed --set sm_mhz=1200 --telemetry "
      "steady.csv "
      "&& foldline fit trace steady.csv --platform rtx4070-laptop -o steady.programs.csv",
      "foldline run traces/samples/mix8.csv --platform rtx4070-laptop --policy nvboost --telemetry phases.csv && "
      "foldline fit "
      "trace phases.csv --platform rtx4070-laptop -o phases.programs.csv"}},
    {"fit policy capping",
     {"foldline fit policy capping traces/samples/powercap.sweep.csv",
      "foldline fit policy capping traces/samples/powercap.sweep.csv -o powercap"}},
    {"fit policy odpp",
     {"foldline synth --apps 5 --seed 1009 -o few.programs.csv && foldline fit policy odpp few.programs.csv --platform "
      "rtx3080ti --match 'gnn_0[1-5]' --seconds 30 --step 300 --epochs 2 -o weights.csv",
      "foldline synth --apps 5 --seed 1009 -o apps.programs.csv && foldline fit policy odpp apps.programs.csv "
      "--platform "
      "rtx3080ti --match 'gnn_0[1-5]' --seconds 30 --step 300 --epochs 2 --shuffle 2 --json"}},
    {"fit policy sensitivity",
     {"foldline fit policy sensitivity traces/samples/dynaco.programs.csv --platform apu-a10-5800k",
      "foldline fit policy sensitivity traces/samples/dynaco.programs.csv --platform apu-a10-5800k -o "
      "runs.csv "
      "--table states.csv"}},
    {"fit policy sweetspot",
     {"foldline fit policy sweetspot traces/samples/energyucb-table1.csv --each",
      "foldline fit policy sweetspot traces/samples/mix8.csv --platform rtx4070-laptop --step 100"}},
    {"fit policy draws",
     {"foldline fit policy draws traces/samples/energyucb-published.json",
      "foldline fit policy draws traces/samples/energyucb-published.json -o published.sweep.csv --draws "
      "draws.json"}},
};

const char *const *fl_examples_of(const char *command) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].command, command))
            return table[i].example;
    return NULL;
}
