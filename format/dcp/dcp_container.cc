#include "format/dcp/dcp_container.h"

namespace reshard {

constinit const Container kDcpContainer = {
    .name = "dcp",
    .kind = "a file of a DCP checkpoint (weights)",
};

}  // namespace reshard
