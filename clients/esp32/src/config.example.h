// Copy this file to config.h, which git ignores, and fill it in.
#pragma once

#define WIFI_SSID "the network"
#define WIFI_PASSWORD "its password"

// Restrict the API key to this device's MAC address (scope), so that a key read out of the flash gives no other access.
#define HOMEPORT_URL "https://homeport.example"
#define HOMEPORT_API_KEY "64 hexadecimal digits"

// The CA certificate that verifies the server's certificate, in PEM form.
#define HOMEPORT_CA_CERTIFICATE                                                                                                   \
    "-----BEGIN CERTIFICATE-----\n"                                                                                               \
    "...\n"                                                                                                                       \
    "-----END CERTIFICATE-----\n"
